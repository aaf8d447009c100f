import type { InodeRecord } from '../inode/record.ts'
import type { PackedFrames } from '../walk/frames.ts'
import type { Sighting } from '../walk/hard-links.ts'
import type { WalkReport } from '../walk/report.ts'
import type { TaskSpec } from '../walk/task-spec.ts'
import type { Boundary } from '../walk/traverse.ts'

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

export function packKeys(records: readonly Pick<InodeRecord, 'inode' | 'born'>[]): BigInt64Array {
  return BigInt64Array.from(records.flatMap(({ inode, born }) => [BigInt.asIntN(64, inode), born]))
}

export function unpackKeys(keys: BigInt64Array): { inode: bigint; born: bigint }[] {
  const unpacked = []
  for (let at = 0; at < keys.length; at += 2) {
    unpacked.push({ inode: BigInt.asUintN(64, keys[at] ?? 0n), born: keys[at + 1] ?? 0n })
  }
  return unpacked
}
