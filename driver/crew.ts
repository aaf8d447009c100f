import type { Worker } from 'node:worker_threads'
import type { MemberData } from '../src/ownership/crew/messages.ts'
import type { WalkOptions } from '../src/ownership/walk-tree.ts'

/** More than this disturbs the node's other users more than it helps: the disk's journal has one writer. */
const MOST_MEMBERS = 4

/** Megabytes. What a walk holds does not grow with the volume; without limits V8 lets garbage lie around. */
const LIMITS = { maxYoungGenerationSizeMb: 24, maxOldGenerationSizeMb: 96 }

/** The asset that the build puts into the executable. */
export const MEMBER_ASSET = 'walk-member.cjs'

/** Threads of this process for large walks. Undefined on a node with one processor. */
export function crew(): WalkOptions['crew'] {
  const members = Math.min(process.getBuiltinModule('node:os').availableParallelism(), MOST_MEMBERS)
  return members > 1 ? { members, recruit } : undefined
}

function recruit(data: MemberData): Worker {
  const { Worker } = process.getBuiltinModule('node:worker_threads')
  const sea = process.getBuiltinModule('node:sea')
  // Handles are closed by the module that opens them: Node must not look after them (it would warn).
  const options = { workerData: data, trackUnmanagedFds: false, resourceLimits: LIMITS }
  if (sea.isSea()) return new Worker(sea.getAsset(MEMBER_ASSET, 'utf8'), { ...options, eval: true })
  return new Worker(new URL('./walk-member.ts', import.meta.url), options)
}
