import type { PackedFrames } from '../walk/frames.ts'
import type { Sighting } from '../walk/hard-links.ts'
import type { WalkCounts, WalkReport } from '../walk/report.ts'
import type { Boundary } from '../walk/traverse.ts'
import type { TaskSpec } from '../walk/walk.ts'

/** What a worker is started with. */
export interface WorkerData {
  index: number
  size: number
  spec: TaskSpec
  inside: Boundary
  shared: Int32Array
}

/** Places in the memory all threads share: parts waiting to be taken, whether all must stop, then three for each worker. */
export const QUEUED = 0
export const STOP = 1
const FIRST = 2
const PER_WORKER = 3

/** Counts the messages sent to a worker, which sleeps on it. */
export const signalOf = (index: number) => FIRST + index * PER_WORKER
export const visitedOf = (index: number) => FIRST + index * PER_WORKER + 1
export const changedOf = (index: number) => FIRST + index * PER_WORKER + 2
export const sharedSize = (workers: number) => FIRST + workers * PER_WORKER

/** What the workers have counted together. */
export function countsIn(shared: Int32Array, workers: number): WalkCounts {
  const counts = { visited: 0, changed: 0 }
  for (let index = 0; index < workers; index++) {
    counts.visited += shared[visitedOf(index)] ?? 0
    counts.changed += shared[changedOf(index)] ?? 0
  }
  return counts
}

/** `keys` has inode and birth time of each sighting in turn; names only those with several links. */
export interface PackedSightings {
  keys: BigInt64Array
  changed: Float64Array
  links: Uint32Array
  names: Pick<Sighting, 'name' | 'at' | 'path'>[]
}

/** For each sighting 0 (no record), 1 (wait), 2 (a settled record) or 3 (an unsettled one); the records in their order. */
export interface PackedAnswers {
  kinds: Uint8Array
  records: Uint8Array<ArrayBuffer>
}

export type ToPool =
  | { say: 'idle' }
  | { say: 'done' }
  | { say: 'share'; part: PackedFrames }
  | { say: 'record'; batch: number; records: Uint8Array<ArrayBuffer> }
  | { say: 'settle'; batch: number }
  | { say: 'forget'; keys: BigInt64Array }
  | { say: 'ask'; sightings: PackedSightings; memory: ArrayBuffer | undefined }
  | { say: 'end'; report: WalkReport }
  | { say: 'failed'; error: unknown }

export type ToWorker =
  | { say: 'part'; part: PackedFrames }
  | { say: 'durable'; batch: number; memory: ArrayBuffer }
  | { say: 'answers'; answers: PackedAnswers }
  | { say: 'end' }
