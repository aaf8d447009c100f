import { type Ownership, PERMISSIONS, SET_IDS, same } from './policy.ts'

/** One inode of a volume as modekeep found it and as it leaves it. (inode, born) names it: numbers are reused. */
export interface InodeRecord {
  inode: bigint
  born: bigint
  /** From the volume's root, for people; a walk never opens it. */
  path: Uint8Array
  uid: number
  before: Ownership
  /** The `security.capability` attribute, which a chown drops. */
  capability: Uint8Array | null
  after: Ownership
  /** What modekeep left before `after`, for the moment between record and change. */
  prior: Ownership
  /** False while its change may be undone, half done or done: the process can have died right after the record. */
  settled: boolean
}

/**
 * Whether the inode still is as modekeep found or left it, so that modekeep may change it again.
 * Anything else is somebody's decision since, and stays.
 */
export function isAsLeft(record: InodeRecord, now: Ownership): boolean {
  const known = [record.before, record.after, record.prior]
  if (known.some((state) => same(state, now))) return true
  if (record.settled) return false
  // Died between chown and chmod: the group of one state, the mode of another, perhaps without the set-id bits.
  const modes = known.flatMap(({ mode }) => [mode, mode & ~SET_IDS])
  return known.some(({ gid }) => gid === now.gid) && modes.includes(now.mode & PERMISSIONS)
}
