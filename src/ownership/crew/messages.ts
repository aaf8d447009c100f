import type { PackedFrames } from '../frames.ts'
import type { Sighting } from '../hard-links.ts'
import type { InodeRecord } from '../record.ts'
import type { WalkReport } from '../report.ts'
import type { TaskSpec } from '../task-spec.ts'
import type { Boundary } from '../traverse.ts'

/** What a member is started with. */
export interface MemberData {
  index: number
  members: number
  spec: TaskSpec
  inside: Boundary
  shared: Int32Array
}

/** Places in the memory all threads share: parts waiting to be taken, whether all must stop, then per member three. */
export const QUEUED = 0
export const STOP = 1
const FIRST = 2
const PER_MEMBER = 3

/** Counts the messages sent to a member, which sleeps on it. */
export const signalOf = (index: number) => FIRST + index * PER_MEMBER
export const visitedOf = (index: number) => FIRST + index * PER_MEMBER + 1
export const changedOf = (index: number) => FIRST + index * PER_MEMBER + 2
export const sharedSize = (members: number) => FIRST + members * PER_MEMBER

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

export type ToLead =
  | { say: 'idle' }
  | { say: 'done' }
  | { say: 'share'; part: PackedFrames }
  | { say: 'record'; batch: number; records: Uint8Array<ArrayBuffer> }
  | { say: 'settle'; batch: number }
  | { say: 'forget'; keys: BigInt64Array }
  | { say: 'ask'; sightings: PackedSightings; memory: ArrayBuffer | undefined }
  | { say: 'end'; report: WalkReport }
  | { say: 'failed'; error: unknown }

export type ToMember =
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
