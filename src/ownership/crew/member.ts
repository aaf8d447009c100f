import type { MessagePort } from 'node:worker_threads'
import type { Inodes } from '../../host/host.ts'
import { batchSize } from '../pipeline.ts'
import { taskOf } from '../task-spec.ts'
import { traverse } from '../traverse.ts'
import { Walk } from '../walk.ts'
import type { Others } from '../walk-settings.ts'
import { MemberPort, type Receive } from './member-port.ts'
import { changedOf, type MemberData, QUEUED, STOP, type ToLead, visitedOf } from './messages.ts'
import { RemoteLedger } from './remote-ledger.ts'

/** A thread of a walk: takes parts of the tree until there are none, and gives of its own when others have none. */
export function runMember(inodes: Inodes, port: MessagePort, receive: Receive, data: MemberData): void {
  const lead = new MemberPort(port, receive, data)
  const say = (message: ToLead) => lead.say(message)
  const { shared, index, inside, members, spec } = data
  const others = new OtherMembers(shared, members, say)
  const walk: Walk = new Walk(inodes, taskOf(spec), new RemoteLedger(lead), {
    inside,
    others,
    batchSize: batchSize(inodes.handleLimit(), members),
    onBatch() {
      shared[visitedOf(index)] = walk.report.visited
      shared[changedOf(index)] = walk.report.changed
    },
  })
  try {
    say({ say: 'idle' })
    for (let next = lead.await('part', 'end'); next.say === 'part'; next = lead.await('part', 'end')) {
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

class OtherMembers implements Others {
  readonly #shared: Int32Array
  readonly #members: number
  readonly #say: (message: ToLead) => void
  #entries = 0

  constructor(shared: Int32Array, members: number, say: (message: ToLead) => void) {
    this.#shared = shared
    this.#members = members
    this.#say = say
  }

  wantWork(): boolean {
    if (++this.#entries % LOOK_EVERY !== 0) return false
    if (Atomics.load(this.#shared, STOP) === 1) throw new Error('another thread of the walk has failed')
    return Atomics.load(this.#shared, QUEUED) < this.#members
  }

  take(part: Parameters<Others['take']>[0]): void {
    Atomics.add(this.#shared, QUEUED, 1)
    this.#say({ say: 'share', part })
  }
}
