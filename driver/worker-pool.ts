import type { Worker } from 'node:worker_threads'
import type { WalkOptions } from '../src/ownership/walks.ts'
import type { WorkerData } from '../src/ownership/workers/messages.ts'
import { startThread } from './thread.ts'

/** More than this disturbs the node's other users more than it helps: the disk's journal has one writer. */
const MOST_WORKERS = 4

/** Megabytes. What a walk holds does not grow with the volume; without limits V8 lets garbage lie around. */
const LIMITS = { maxYoungGenerationSizeMb: 9, maxOldGenerationSizeMb: 96 }

/** Threads of this process for large walks. Undefined on a node with one processor. */
export function workerPool(): WalkOptions['workerPool'] {
  const size = Math.min(process.getBuiltinModule('node:os').availableParallelism(), MOST_WORKERS)
  return size > 1 ? { size, spawn } : undefined
}

function spawn(data: WorkerData): Worker {
  return startThread('walk-worker', data, { resourceLimits: LIMITS })
}
