import type { MessagePort } from 'node:worker_threads'
import type { Inodes } from '../../host/host.ts'
import type { PackedFrames } from '../walk/frames.ts'
import { batchSize } from '../walk/pipeline.ts'
import { traverse } from '../walk/traverse.ts'
import { type OtherWorkers, Walk } from '../walk/walk.ts'
import { changedOf, QUEUED, STOP, type ToPool, visitedOf, type WorkerData } from './messages.ts'
import { RemoteLedger } from './remote-ledger.ts'
import { type Receive, WorkerPort } from './worker-port.ts'

/** A thread of a walk: takes parts of the tree until there are none, and gives of its own when others have none. */
export function runWorker(inodes: Inodes, port: MessagePort, receive: Receive, data: WorkerData): void {
  const pool = new WorkerPort(port, receive, data)
  const say = (message: ToPool) => pool.say(message)
  const { shared, index, inside, size, spec } = data
  const others = new PooledWorkers(shared, size, say)
  const walk: Walk = new Walk(inodes, spec, new RemoteLedger(pool), {
    inside,
    others,
    batchSize: batchSize(inodes.handleLimit(), size),
    onBatch() {
      shared[visitedOf(index)] = walk.report.visited
      shared[changedOf(index)] = walk.report.changed
    },
  })
  try {
    say({ say: 'idle' })
    for (let next = pool.await('part', 'end'); next.say === 'part'; next = pool.await('part', 'end')) {
      // The next part is on its way while this one is walked.
      say({ say: 'idle' })
      traverse(inodes, next.part, inside, walk)
      say({ say: 'done' })
    }
    walk.flush()
    say({ say: 'end', report: walk.report })
  } catch (error) {
    walk.close()
    say({ say: 'failed', error })
  }
}

// To look at shared memory is cheap, to look for something to give is not.
const LOOK_EVERY = 64

class PooledWorkers implements OtherWorkers {
  readonly #shared: Int32Array
  readonly #workers: number
  readonly #say: (message: ToPool) => void
  #entries = 0

  constructor(shared: Int32Array, size: number, say: (message: ToPool) => void) {
    this.#shared = shared
    this.#workers = size
    this.#say = say
  }

  poll(): boolean {
    if (++this.#entries % LOOK_EVERY !== 0) return false
    if (Atomics.load(this.#shared, STOP) === 1) throw new Error('another thread of the walk has failed')
    return Atomics.load(this.#shared, QUEUED) < this.#workers
  }

  give(part: PackedFrames): void {
    Atomics.add(this.#shared, QUEUED, 1)
    this.#say({ say: 'share', part })
  }
}
