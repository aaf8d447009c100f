import type { Worker } from 'node:worker_threads'
import type { Inodes } from '../../host/host.ts'
import type { Journal } from '../journal/journal.ts'
import { Frames, type PackedFrames } from '../walk/frames.ts'
import type { JournalLedger } from '../walk/ledger.ts'
import { mergeReports, newReport, type WalkReport } from '../walk/report.ts'
import { packAnswers, QUEUED, STOP, signalOf, type ToPool, type ToWorker, type WorkerData } from './messages.ts'

export interface PoolOrder extends Pick<WorkerData, 'size' | 'spec' | 'inside'> {
  /** Starts a thread that runs `runWorker` with what it is given. */
  spawn(data: WorkerData): Worker
  inodes: Inodes
  first: PackedFrames
  journal: Journal
  ledger: JournalLedger
}

interface PooledWorker {
  worker: Worker
  /** Parts it has and is not done with. */
  parts: number
  isIdle: boolean
  /** The journal's numbers of its batches that are not settled. */
  batches: Map<number, bigint>
  /** What it has done so far. */
  report: WalkReport
  isDone?: boolean
}

/** Has several threads walk a tree; keeps the journal for them and hands out the parts. */
export class WorkerPool {
  readonly #order: PoolOrder
  readonly #shared: Int32Array
  readonly #workers: PooledWorker[] = []
  readonly #queue: PackedFrames[]
  /** To be recorded with the next commit. */
  #pending: { pooled: PooledWorker; batch: number; records: Uint8Array<ArrayBuffer> }[] = []
  #failure: { error: unknown } | undefined

  constructor(order: PoolOrder) {
    this.#order = order
    this.#shared = new Int32Array(new SharedArrayBuffer(signalOf(order.size) * 4))
    this.#queue = [order.first]
    this.#shared[QUEUED] = 1
  }

  /** What the threads have done so far. */
  get report(): WalkReport {
    return mergeReports(this.#workers.map(({ report }) => report))
  }

  /**
   * Goes on with the threads that could be started.
   * @returns undefined where none could: the first part is then the caller's again
   * @throws what the first thread to fail has thrown, when all have ended
   */
  async run(): Promise<WalkReport | undefined> {
    const ends = this.#spawn()
    if (ends.length === 0) return undefined
    await Promise.all(ends)
    for (const part of this.#queue) new Frames(this.#order.inodes, part).close()
    if (this.#failure) throw this.#failure.error
    return this.report
  }

  /** @returns the end of each thread. A node may be short of processes or handles. */
  #spawn(): Promise<void>[] {
    const { spawn, size, spec, inside } = this.#order
    const ends: Promise<void>[] = []
    try {
      for (let index = 0; index < size; index++) {
        ends.push(this.#add(spawn({ index, size, spec, inside, shared: this.#shared })))
      }
    } catch {
      // With fewer it takes longer.
    }
    return ends
  }

  #add(worker: Worker): Promise<void> {
    const pooled: PooledWorker = { worker, parts: 0, isIdle: false, batches: new Map(), report: newReport() }
    this.#workers.push(pooled)
    worker.on('message', (message: ToPool) => this.#guard(() => this.#hear(pooled, message)))
    worker.on('error', (error) => this.#fail(error))
    return new Promise((resolve) => {
      // What it has said is heard before.
      worker.on('exit', (code) => {
        if (!pooled.isDone) this.#fail(new Error(`a thread of the walk ended early (${code})`))
        resolve()
      })
    })
  }

  #hear(pooled: PooledWorker, message: ToPool): void {
    const { journal, ledger } = this.#order
    switch (message.say) {
      case 'idle':
        pooled.isIdle = true
        this.#dispatch()
        break
      case 'done':
        pooled.parts--
        this.#dispatch()
        break
      case 'share':
        this.#queue.push(message.part)
        this.#dispatch()
        break
      case 'record':
        this.#pending.push({ pooled, ...message })
        if (this.#pending.length === 1) setImmediate(() => this.#guard(() => this.#commit()))
        break
      case 'settle':
        // A batch that nothing is changed for is not awaited.
        if (!pooled.batches.has(message.batch)) this.#commit()
        journal.settle(pooled.batches.get(message.batch) ?? 0n)
        pooled.batches.delete(message.batch)
        break
      case 'forget':
        journal.forget(message.keys)
        break
      case 'ask': {
        const answers = packAnswers([...ledger.find(message.question)])
        this.#tell(pooled, { say: 'answers', answers }, [answers.records.buffer])
        break
      }
      case 'report':
        pooled.report = message.report
        break
      case 'end':
        pooled.isDone = true
        break
      case 'failed':
        this.#fail(message.error)
        break
    }
  }

  /** What the workers record at about the same time becomes durable with one commit. */
  #commit(): void {
    const pending = this.#pending
    this.#pending = []
    if (pending.length === 0) return
    const numbers = this.#order.journal.append(pending.map(({ records }) => records))
    for (const [at, { pooled, batch, records }] of pending.entries()) {
      // Freed now: a collector that sees a small object waits until there are many.
      records.buffer.transfer(0)
      pooled.batches.set(batch, numbers[at] ?? 0n)
      this.#tell(pooled, { say: 'durable', batch })
    }
  }

  /** To those who have least to do first. Nothing left, and nobody who could give of his own: the walk is over. */
  #dispatch(): void {
    const idle = this.#workers.filter(({ isIdle }) => isIdle && !this.#failure).sort((a, b) => a.parts - b.parts)
    for (const pooled of idle) {
      const part = this.#queue.shift()
      if (part === undefined) break
      Atomics.sub(this.#shared, QUEUED, 1)
      pooled.isIdle = false
      pooled.parts++
      this.#tell(pooled, { say: 'part', part })
    }
    const isOver = this.#queue.length === 0 && this.#workers.every(({ parts }) => parts === 0)
    if (isOver) for (const pooled of this.#workers) this.#tell(pooled, { say: 'end' })
  }

  #tell(pooled: PooledWorker, message: ToWorker, transfer: ArrayBuffer[] = []): void {
    pooled.worker.postMessage(message, transfer)
    this.#wake(pooled)
  }

  #wake(pooled: PooledWorker): void {
    const signal = signalOf(this.#workers.indexOf(pooled))
    Atomics.add(this.#shared, signal, 1)
    Atomics.notify(this.#shared, signal)
  }

  #guard(work: () => void): void {
    try {
      work()
    } catch (error) {
      this.#fail(error)
    }
  }

  /** All threads end at their next look; the first failure is the one that is told. */
  #fail(error: unknown): void {
    this.#failure ??= { error }
    Atomics.store(this.#shared, STOP, 1)
    for (const pooled of this.#workers) this.#wake(pooled)
  }
}
