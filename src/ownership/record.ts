import type { Stat } from '../host/host.ts'
import { isStripped, type Ownership, ownershipOf, same } from './policy.ts'

/** One inode of a volume as modekeep found it and as it leaves it. (inode, born) names it: numbers are reused. */
export interface InodeRecord {
  inode: bigint
  born: bigint
  /** From the volume's root, for people, its beginning cut off where it is long; a walk never opens it. */
  path: Uint8Array
  uid: number
  before: Ownership
  /** The `security.capability` attribute, which a chown drops. */
  capability: Uint8Array | null
  /** mtime (nanoseconds) and size when last recorded: whether the content is the one that had the capability. */
  modified: bigint
  size: bigint
  after: Ownership
  /** What modekeep left before `after`, for the moment between record and change. */
  prior: Ownership
  /** False while its change may be undone, half done or done: the process can have died right after the record. */
  settled: boolean
}

/** What an inode is now. */
export interface Found {
  stat: Stat
  capability: Uint8Array | null
}

/**
 * Whether the inode still is as modekeep found or left it, so that modekeep may change it again. Anything else is
 * somebody's decision since, and stays: also a capability or a set-id bit that a write has taken away.
 */
export function isAsLeft(record: InodeRecord, now: Found): boolean {
  const owned = ownershipOf(now.stat)
  const { before, after, prior, settled } = record
  const known = settled ? [before, after] : [before, after, prior]
  const whole = sameBytes(record.capability, now.capability)
  if (whole && known.some((state) => same(state, owned))) return true
  // A chown can have taken the capability; another one is somebody's.
  if (settled || !(whole || now.capability === null) || !known.some(({ gid }) => gid === owned.gid)) return false
  // Died between chown and chmod: the group of one state, the mode of another.
  if (whole && known.some(({ mode }) => mode === owned.mode)) return true
  const fits = known.some(({ mode }) => owned.mode === mode || isStripped(owned.mode, mode))
  return fits && isUntouched(record, now.stat)
}

/**
 * Whether the content is the recorded one, so that privileges a chown took may be given back. Only its owner can set a
 * file's mtime back: where that is not root, it is no witness for a capability.
 */
export function isUntouched(record: InodeRecord, now: Stat): boolean {
  const witness = now.uid === 0 || record.capability === null
  return witness && record.modified === now.modified && record.size === now.size
}

export function sameBytes(a: Uint8Array | null, b: Uint8Array | null): boolean {
  return a === null || b === null ? a === b : Buffer.compare(a, b) === 0
}
