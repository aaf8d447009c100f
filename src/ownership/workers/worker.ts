import { type MessagePort, receiveMessageOnPort } from 'node:worker_threads'
import type { Inodes } from '../../host/host.ts'
import type { InodeRecord } from '../inode/record.ts'
import { encode } from '../journal/codec.ts'
import type { PackedFrames } from '../walk/frames.ts'
import type { Answer, Batch, Ledger, Question } from '../walk/ledger.ts'
import { batchSize } from '../walk/pipeline.ts'
import { traverse } from '../walk/traverse.ts'
import { Walk } from '../walk/walk.ts'
import { QUEUED, STOP, signalOf, type ToPool, type ToWorker, unpackAnswers, type WorkerData } from './messages.ts'

/** A thread of a walk: takes parts of the tree until there are none, and gives of its own when others have none. */
export function runWorker(inodes: Inodes, port: MessagePort, data: WorkerData): void {
  const pool = new Pool(port, data)
  const { inside, size, spec } = data
  using walk: Walk = new Walk(inodes, spec, pool, {
    inside,
    others: pool,
    batchSize: batchSize(inodes.handleLimit(), size),
    onBatch: () => pool.say({ say: 'report', report: walk.report }),
  })
  try {
    pool.say({ say: 'idle' })
    for (let next = pool.await('part', 'end'); next.say === 'part'; next = pool.await('part', 'end')) {
      // The next part is on its way while this one is walked.
      pool.say({ say: 'idle' })
      traverse(inodes, next.part, inside, walk)
      pool.say({ say: 'done' })
    }
    walk.makeRoom()
    pool.say({ say: 'report', report: walk.report })
    pool.say({ say: 'end' })
  } catch (error) {
    pool.say({ say: 'failed', error })
  }
}

// To look at shared memory is cheap, to look for something to give is not.
const LOOK_EVERY = 64

/**
 * The pool, as its worker sees it: it has the journal, and wants work for the other threads. A worker waits for answers
 * without an event loop, as a walk is one long run.
 */
class Pool implements Ledger {
  readonly #port: MessagePort
  readonly #data: WorkerData
  readonly #arrived: ToWorker[] = []
  #entries = 0
  #batches = 0
  /** The last of the batches that are on disk. */
  #durable = -1

  constructor(port: MessagePort, data: WorkerData) {
    this.#port = port
    this.#data = data
  }

  /** @param transfer memory that is the pool's from now on */
  say(message: ToPool, transfer: ArrayBuffer[] = []): void {
    this.#port.postMessage(message, transfer)
  }

  /** The next message of one of these kinds; others stay for whoever waits for them. */
  await<K extends ToWorker['say']>(...kinds: K[]): Extract<ToWorker, { say: K }> {
    const isAwaited = (message: ToWorker): message is Extract<ToWorker, { say: K }> =>
      (kinds as string[]).includes(message.say)
    for (;;) {
      const index = this.#arrived.findIndex(isAwaited)
      if (index >= 0) return this.#arrived.splice(index, 1)[0] as Extract<ToWorker, { say: K }>
      this.#arrived.push(this.#next())
    }
  }

  #next(): ToWorker {
    const { shared, index } = this.#data
    const signal = signalOf(index)
    for (;;) {
      // Read first: a message that comes after this look moves it, and the wait ends at once.
      const seen = Atomics.load(shared, signal)
      const received = receiveMessageOnPort(this.#port)
      if (received) return received.message
      this.#checkOthers()
      Atomics.wait(shared, signal, seen)
    }
  }

  #checkOthers(): void {
    if (Atomics.load(this.#data.shared, STOP) === 1) throw new Error('another thread of the walk has failed')
  }

  poll(): boolean {
    if (++this.#entries % LOOK_EVERY !== 0) return false
    this.#checkOthers()
    return Atomics.load(this.#data.shared, QUEUED) < this.#data.size
  }

  give(part: PackedFrames): void {
    Atomics.add(this.#data.shared, QUEUED, 1)
    this.say({ say: 'share', part })
  }

  ask(question: Question): () => Answer[] {
    this.say({ say: 'ask', question })
    return () => unpackAnswers(this.await('answers').answers)
  }

  record(records: readonly InodeRecord[]): Batch {
    const batch = this.#batches++
    const encoded = encode(records)
    this.say({ say: 'record', batch, records: encoded }, [encoded.buffer])
    return {
      awaitDurable: () => {
        while (this.#durable < batch) this.#durable = this.await('durable').batch
      },
      settle: () => this.say({ say: 'settle', batch }),
    }
  }

  forget(keys: BigInt64Array): void {
    this.say({ say: 'forget', keys })
  }
}
