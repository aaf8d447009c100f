import type { Worker } from 'node:worker_threads'
import type { PackedFrames } from '../frames.ts'
import type { Journal } from '../journal.ts'
import type { LocalLedger } from '../ledger.ts'
import { mergeReports, type WalkReport } from '../report.ts'
import type { TaskSpec } from '../task-spec.ts'
import type { Boundary } from '../traverse.ts'
import { CrewJournal } from './crew-journal.ts'
import { type MemberData, QUEUED, STOP, sharedSize, signalOf, type ToLead, type ToMember } from './messages.ts'
import { answerEach } from './packing.ts'

export interface CrewOrder {
  /** Starts a thread that runs `runMember` with what it is given. */
  recruit(data: MemberData): Worker
  members: number
  spec: TaskSpec
  inside: Boundary
  first: PackedFrames
  journal: Journal
  ledger: LocalLedger
  /** Lets go of the handles of a part that nobody will walk. */
  drop(part: PackedFrames): void
  /** Memory the members count in, for whoever shows progress. */
  started(shared: Int32Array): void
}

interface Member {
  worker: Worker
  /** Parts it has and is not done with. */
  parts: number
  isIdle: boolean
  hasEnded: boolean
}

/** Has several threads walk a tree; keeps the journal for them and hands out the parts. */
export class Crew {
  readonly #order: CrewOrder
  readonly #shared: Int32Array
  readonly #members: Member[] = []
  readonly #queue: PackedFrames[] = []
  readonly #journal: CrewJournal
  readonly #reports: WalkReport[] = []
  #running = 0
  #failure: { error: unknown } | undefined
  #resolve: () => void = () => {}

  constructor(order: CrewOrder) {
    this.#order = order
    this.#shared = new Int32Array(new SharedArrayBuffer(sharedSize(order.members) * 4))
    this.#journal = new CrewJournal(
      order.journal,
      (index, batch, memory) => this.#tell(index, { say: 'durable', batch, memory }, [memory]),
      (error) => this.#fail(error),
    )
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
      this.#recruit()
      if (this.#running === 0) resolve()
    })
    if (this.#members.length === 0) return undefined
    await Promise.all(this.#members.map(({ worker }) => worker.terminate()))
    for (const part of this.#queue) this.#order.drop(part)
    if (this.#failure) throw this.#failure.error
    return mergeReports(this.#reports)
  }

  /** A node may be short of processes or handles. */
  #recruit(): void {
    const { recruit, members, spec, inside, started } = this.#order
    started(this.#shared)
    try {
      for (let index = 0; index < members; index++) {
        this.#add(index, recruit({ index, members, spec, inside, shared: this.#shared }))
      }
    } catch {
      // With fewer it takes longer.
    }
  }

  #add(index: number, worker: Worker): void {
    const member: Member = { worker, parts: 0, isIdle: false, hasEnded: false }
    this.#members.push(member)
    this.#running++
    worker.on('message', (message: ToLead) => this.#guard(() => this.#hear(index, message)))
    worker.on('error', (error) => this.#end(member, error))
    worker.on('exit', (code) => this.#end(member, new Error(`a thread of the walk ended early (${code})`)))
  }

  #hear(index: number, message: ToLead): void {
    const member = this.#members[index]
    if (member === undefined) return
    switch (message.say) {
      case 'idle':
        member.isIdle = true
        this.#dispatch()
        break
      case 'done':
        member.parts--
        this.#dispatch()
        break
      case 'share':
        this.#queue.push(message.part)
        this.#dispatch()
        break
      case 'record':
        this.#journal.record(index, message)
        break
      case 'settle':
        this.#journal.settle(index, message.batch)
        break
      case 'forget':
        this.#journal.forget(message.keys)
        break
      case 'ask': {
        const { ledger } = this.#order
        const answers = answerEach(message.sightings, (sighting) => ledger.askEncoded(sighting), message.memory)
        this.#tell(index, { say: 'answers', answers }, [answers.records.buffer])
        break
      }
      case 'end':
        this.#reports.push(message.report)
        this.#end(member)
        break
      case 'failed':
        this.#end(member, message.error)
        break
    }
  }

  /** To those who have least to do first. Nothing left, and nobody who could give of his own: the walk is over. */
  #dispatch(): void {
    const idle = [...this.#members.entries()]
      .filter(([, { isIdle }]) => isIdle)
      .sort(([, a], [, b]) => a.parts - b.parts)
    for (const [index, member] of idle) {
      const part = this.#queue.shift()
      if (part === undefined) break
      Atomics.sub(this.#shared, QUEUED, 1)
      member.isIdle = false
      member.parts++
      this.#tell(index, { say: 'part', part })
    }
    const isOver = this.#queue.length === 0 && this.#members.every(({ parts }) => parts === 0)
    if (!isOver) return
    for (const index of this.#members.keys()) this.#tell(index, { say: 'end' })
  }

  #tell(index: number, message: ToMember, transfer: ArrayBuffer[] = []): void {
    this.#members[index]?.worker.postMessage(message, transfer)
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
    for (const index of this.#members.keys()) this.#wake(index)
  }

  /** However often it is told. */
  #end(member: Member, error?: unknown): void {
    if (member.hasEnded) return
    member.hasEnded = true
    if (error !== undefined) this.#fail(error)
    this.#running--
    if (this.#running === 0) this.#resolve()
  }
}
