import type { Worker } from 'node:worker_threads'
import type { MemberData } from '../src/ownership/crew/messages.ts'
import type { WalkOptions } from '../src/ownership/walk-tree.ts'
import { startThread } from './thread.ts'

/** More than this disturbs the node's other users more than it helps: the disk's journal has one writer. */
const MOST_MEMBERS = 4

/** Megabytes. What a walk holds does not grow with the volume; without limits V8 lets garbage lie around. */
const LIMITS = { maxYoungGenerationSizeMb: 24, maxOldGenerationSizeMb: 96 }

/** Threads of this process for large walks. Undefined on a node with one processor. */
export function crew(): WalkOptions['crew'] {
  const members = Math.min(process.getBuiltinModule('node:os').availableParallelism(), MOST_MEMBERS)
  return members > 1 ? { members, recruit } : undefined
}

function recruit(data: MemberData): Worker {
  return startThread('walk-member', data, { resourceLimits: LIMITS })
}
