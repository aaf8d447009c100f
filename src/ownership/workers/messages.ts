import type { InodeRecord } from '../inode/record.ts'
import { decode, Joiner, split } from '../journal/codec.ts'
import type { PackedFrames } from '../walk/frames.ts'
import type { Sighting } from '../walk/hard-links.ts'
import type { Answer, EncodedAnswer } from '../walk/ledger.ts'
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

const NO_RECORD = 0
const WAIT = 1
const SETTLED = 2
const UNSETTLED = 3
const PER_KEY = 2
const ONLY_NAME = { name: '', at: 0, path: new Uint8Array() }

export function packSightings(sightings: readonly Sighting[]): PackedSightings {
  const keys = new BigInt64Array(sightings.length * PER_KEY)
  const changed = Float64Array.from(sightings, (sighting) => sighting.changed)
  const names: PackedSightings['names'] = []
  for (const [index, { inode, born, links, name, at, path }] of sightings.entries()) {
    keys[index * PER_KEY] = BigInt.asIntN(64, inode)
    keys[index * PER_KEY + 1] = born
    if (links > 1) names.push({ name, at, path })
  }
  return { keys, changed, links: Uint32Array.from(sightings, ({ links }) => links), names }
}

/** Answers them one by one, so that nothing of a sighting or a record is kept in between. */
export function answerEach(
  { keys, changed, links, names }: PackedSightings,
  answer: (sighting: Sighting) => EncodedAnswer,
  memory: ArrayBuffer | undefined,
): PackedAnswers {
  const kinds = new Uint8Array(links.length)
  const records = new Joiner(memory)
  const remaining = names.values()
  for (const [index, count] of links.entries()) {
    const answered = answer({
      inode: BigInt.asUintN(64, keys[index * PER_KEY] ?? 0n),
      born: keys[index * PER_KEY + 1] ?? 0n,
      changed: changed[index] ?? 0,
      links: count,
      ...((count > 1 && remaining.next().value) || ONLY_NAME),
    })
    kinds[index] = kindOf(answered)
    if (typeof answered === 'object') records.add(answered)
  }
  return { kinds, records: records.bytes }
}

function kindOf(answer: EncodedAnswer): number {
  if (answer === undefined) return NO_RECORD
  if (answer === 'wait') return WAIT
  return answer.settled ? SETTLED : UNSETTLED
}

export function unpackAnswers({ kinds, records }: PackedAnswers): Answer[] {
  const encoded = split(records)
  return Array.from(kinds, (kind) => {
    if (kind === NO_RECORD) return undefined
    if (kind === WAIT) return 'wait'
    const next = encoded.next()
    return next.done ? undefined : decode(next.value, kind === SETTLED)
  })
}

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
