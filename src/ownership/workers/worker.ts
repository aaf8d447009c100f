import type { MessagePort } from 'node:worker_threads'
import type { Inodes } from '../../host/host.ts'
import { batchSize } from '../walk/pipeline.ts'
import { type OtherWorkers, traverse } from '../walk/traverse.ts'
import { Walk } from '../walk/walk.ts'
import { changedOf, QUEUED, STOP, type ToPool, visitedOf, type WorkerData } from './messages.ts'
import { RemoteLedger } from './remote-ledger.ts'
import { type Receive, WorkerPort } from './worker-port.ts'

/** A thread of a walk: takes parts of the tree until there are none, and gives of its own when others have none. */
export function runWorker(inodes: Inodes, port: MessagePort, receive: Receive, data: WorkerData): void {
  const pool = new WorkerPort(port, receive, data)
  const say = (message: ToPool) => pool.say(message)
  const { shared, index, inside, size, spec } = data
  const walk: Walk = new Walk(inodes, spec, new RemoteLedger(pool), {
    inside,
    others: otherWorkers(data, say),
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

function otherWorkers({ shared, size }: WorkerData, say: (message: ToPool) => void): OtherWorkers {
  let entries = 0
  return {
    poll() {
      if (++entries % LOOK_EVERY !== 0) return false
      if (Atomics.load(shared, STOP) === 1) throw new Error('another thread of the walk has failed')
      return Atomics.load(shared, QUEUED) < size
    },
    give(part) {
      Atomics.add(shared, QUEUED, 1)
      say({ say: 'share', part })
    },
  }
}
