import type { Worker } from 'node:worker_threads'
import type { Inodes } from '../../host/host.ts'
import type { Journal } from '../journal/journal.ts'
import { closePart, type PackedFrames } from '../walk/frames.ts'
import type { JournalLedger } from '../walk/ledger.ts'
import { mergeReports, type WalkCounts, type WalkReport } from '../walk/report.ts'
import type { Boundary } from '../walk/traverse.ts'
import type { TaskSpec } from '../walk/walk.ts'
import {
  answerEach,
  countsIn,
  QUEUED,
  STOP,
  sharedSize,
  signalOf,
  type ToPool,
  type ToWorker,
  unpackKeys,
  type WorkerData,
} from './messages.ts'

export interface PoolOrder {
  /** Starts a thread that runs `runWorker` with what it is given. */
  spawn(data: WorkerData): Worker
  size: number
  inodes: Inodes
  spec: TaskSpec
  inside: Boundary
  first: PackedFrames
  journal: Journal
  ledger: JournalLedger
  /** Given the way to look at what the workers count, for whoever shows progress. */
  watch(counts: () => WalkCounts): void
}

interface PooledWorker {
  worker: Worker
  /** Parts it has and is not done with. */
  parts: number
  isIdle: boolean
  hasEnded: boolean
  /** The journal's numbers of its batches that are not settled. */
  batches: Map<number, bigint>
}

/** Has several threads walk a tree; keeps the journal for them and hands out the parts. */
export class WorkerPool {
  readonly #order: PoolOrder
  readonly #shared: Int32Array
  readonly #workers: PooledWorker[] = []
  readonly #queue: PackedFrames[] = []
  /** To be recorded with the next commit. */
  #pending: { index: number; batch: number; records: Uint8Array<ArrayBuffer> }[] = []
  readonly #reports: WalkReport[] = []
  #running = 0
  #failure: { error: unknown } | undefined
  #resolve: () => void = () => {}

  constructor(order: PoolOrder) {
    this.#order = order
    this.#shared = new Int32Array(new SharedArrayBuffer(sharedSize(order.size) * 4))
  }

  /**
   * Goes on with the threads that could be started.
   * @returns undefined where none could: the first part is then the caller's again
   * @throws what the first thread to fail has thrown, when all have ended
   */
  async run(): Promise<WalkReport | undefined> {
    this.#queue.push(this.#order.first)
    Atomics.add(this.#shared, QUEUED, 1)
    await new Promise<void>((resolve) => {
      this.#resolve = resolve
      this.#spawn()
      if (this.#running === 0) resolve()
    })
    if (this.#workers.length === 0) return undefined
    await Promise.all(this.#workers.map(({ worker }) => worker.terminate()))
    for (const part of this.#queue) closePart(this.#order.inodes, part)
    if (this.#failure) throw this.#failure.error
    return mergeReports(this.#reports)
  }

  /** A node may be short of processes or handles. */
  #spawn(): void {
    const { spawn, size, spec, inside, watch } = this.#order
    watch(() => countsIn(this.#shared, size))
    try {
      for (let index = 0; index < size; index++) {
        this.#add(index, spawn({ index, size, spec, inside, shared: this.#shared }))
      }
    } catch {
      // With fewer it takes longer.
    }
  }

  #add(index: number, worker: Worker): void {
    const pooled: PooledWorker = { worker, parts: 0, isIdle: false, hasEnded: false, batches: new Map() }
    this.#workers.push(pooled)
    this.#running++
    worker.on('message', (message: ToPool) => this.#guard(() => this.#hear(index, message)))
    worker.on('error', (error) => this.#end(pooled, error))
    worker.on('exit', (code) => this.#end(pooled, new Error(`a thread of the walk ended early (${code})`)))
  }

  #hear(index: number, message: ToPool): void {
    const pooled = this.#workers[index]
    if (pooled === undefined) return
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
        this.#pending.push({ index, ...message })
        if (this.#pending.length === 1) setImmediate(() => this.#guard(() => this.#commit()))
        break
      case 'settle':
        journal.settle(pooled.batches.get(message.batch) ?? 0n)
        pooled.batches.delete(message.batch)
        break
      case 'forget':
        journal.forget(unpackKeys(message.keys))
        break
      case 'ask': {
        const answers = answerEach(message.sightings, (sighting) => ledger.askEncoded(sighting), message.memory)
        this.#tell(index, { say: 'answers', answers }, [answers.records.buffer])
        break
      }
      case 'end':
        this.#reports.push(message.report)
        this.#end(pooled)
        break
      case 'failed':
        this.#end(pooled, message.error)
        break
    }
  }

  /** What the workers record at about the same time becomes durable with one commit; each gets its memory back. */
  #commit(): void {
    const pending = this.#pending
    this.#pending = []
    const numbers = this.#order.journal.appendAll(pending.map(({ records }) => records))
    for (const [at, { index, batch, records }] of pending.entries()) {
      this.#workers[index]?.batches.set(batch, numbers[at] ?? 0n)
      const memory = records.buffer
      this.#tell(index, { say: 'durable', batch, memory }, [memory])
    }
  }

  /** To those who have least to do first. Nothing left, and nobody who could give of his own: the walk is over. */
  #dispatch(): void {
    const idle = [...this.#workers.entries()]
      .filter(([, { isIdle }]) => isIdle)
      .sort(([, a], [, b]) => a.parts - b.parts)
    for (const [index, pooled] of idle) {
      const part = this.#queue.shift()
      if (part === undefined) break
      Atomics.sub(this.#shared, QUEUED, 1)
      pooled.isIdle = false
      pooled.parts++
      this.#tell(index, { say: 'part', part })
    }
    const isOver = this.#queue.length === 0 && this.#workers.every(({ parts }) => parts === 0)
    if (!isOver) return
    for (const index of this.#workers.keys()) this.#tell(index, { say: 'end' })
  }

  #tell(index: number, message: ToWorker, transfer: ArrayBuffer[] = []): void {
    this.#workers[index]?.worker.postMessage(message, transfer)
    this.#wake(index)
  }

  #wake(index: number): void {
    Atomics.add(this.#shared, signalOf(index), 1)
    Atomics.notify(this.#shared, signalOf(index))
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
    for (const index of this.#workers.keys()) this.#wake(index)
  }

  /** However often it is told. */
  #end(pooled: PooledWorker, error?: unknown): void {
    if (pooled.hasEnded) return
    pooled.hasEnded = true
    if (error !== undefined) this.#fail(error)
    this.#running--
    if (this.#running === 0) this.#resolve()
  }
}
