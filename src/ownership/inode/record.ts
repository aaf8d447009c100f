import type { Stat } from '../../host/host.ts'
import { isStripped, type Ownership, ownershipOf, SET_GID, same } from './policy.ts'

/** One inode of a volume as modekeep found it and as it leaves it. (inode, born) names it: numbers are reused. */
export interface InodeRecord {
  inode: bigint
  born: bigint
  /** From the volume's root, for people, its beginning cut off where it is long; a walk never opens it. */
  path: Uint8Array
  uid: number
  before: Ownership
  /** The `security.capability` attribute, which a chown drops. */
  capability: Uint8Array | undefined
  acl: AclStates
  /** mtime (nanoseconds) and size when last recorded: whether the content is the one that had the privileges. */
  modified: bigint
  size: bigint
  /** What it was when last recorded, and whether it had its capability then. */
  seen: Ownership
  seenWhole: boolean
  /** The same, had no earlier call been interrupted at it: with the set-id bits that its chown took. */
  meant: Ownership
  /** Its set-id bits and capability are gone for good: a call was interrupted at it, its content may be another. */
  forfeited: boolean
  /** What the last recorded change makes of it. */
  after: Ownership
  /** What `apply` left it as, which restoreOnUnmount returns to. Undefined: it returns to `before`. */
  baseline?: Baseline | undefined
  /** False while its change may be undone, half done or done: the process can have crashed right after the record. */
  settled: boolean
}

/** The state of an inode after `apply` by hand. */
export interface Baseline extends Ownership {
  /** The access ACL; undefined: none. */
  acl: Uint8Array | undefined
}

/** The access ACL as first found, when last recorded, and as the last recorded change makes it; undefined: none. */
interface AclStates {
  before: Uint8Array | undefined
  seen: Uint8Array | undefined
  after: Uint8Array | undefined
}

export const NO_ACL: AclStates = { before: undefined, seen: undefined, after: undefined }

/** Names an inode of a volume: inode numbers are reused. */
export function keyOf({ inode, born }: { inode: bigint; born: bigint }): string {
  return `${inode}-${born}`
}

/** What an inode is now. */
export interface Found {
  stat: Stat
  capability: Uint8Array | undefined
  acl: Uint8Array | undefined
}

/** `forfeit`: it gets its group, but not the privileges that an interrupted call has taken. */
export interface Meant extends Ownership {
  forfeit?: boolean
}

/**
 * What the inode is, or would be if no call had been interrupted at it. Undefined where somebody changed it since: that
 * is a decision, and stays, also where a write or a user has taken a set-id bit or a capability away.
 */
export function meantState(record: InodeRecord, now: Found): Meant | undefined {
  const { before, after, acl } = record
  // Where inodes have no birth time, a number that was reused shows in the owner, if at all.
  if (record.born === 0n && record.uid !== now.stat.uid) return undefined
  const owned = ownershipOf(now.stat)
  const whole = sameBytes(dueCapability(record), now.capability)
  if (whole && same(before, owned) && sameBytes(now.acl, acl.before)) return owned
  if (whole && same(after, owned) && sameBytes(now.acl, acl.after)) return owned
  if (whole && isAtBaseline(record, now)) return owned
  // A chown takes a capability away; another one is somebody's.
  if (record.settled || !(whole || now.capability === undefined)) return undefined
  if (sameBytes(now.acl, acl.seen)) return interruptedState(record, now, whole)
  return sameBytes(now.acl, acl.after) ? interruptedState(withAclGiven(record), now, whole) : undefined
}

/** Whether an inode has the group, the mode and the ACL that `apply` left it with. */
export function isAtBaseline({ baseline }: InodeRecord, { stat, acl }: Found): boolean {
  return baseline !== undefined && same(baseline, ownershipOf(stat)) && sameBytes(acl, baseline.acl)
}

/** An ACL brings the permission bits of its mode with it. */
function withAclGiven(record: InodeRecord): InodeRecord {
  const bits = (state: Ownership) => ({ ...state, mode: (state.mode & ~0o777) | (record.after.mode & 0o777) })
  return { ...record, seen: bits(record.seen), meant: bits(record.meant) }
}

function interruptedState(record: InodeRecord, now: Found, whole: boolean): Meant | undefined {
  const { after, seen, meant } = record
  const owned = ownershipOf(now.stat)
  if (same(seen, owned) && whole === record.seenWhole) {
    const half = !whole || !same(seen, meant)
    return !half || isUntouched(record, now.stat) ? meant : { ...owned, forfeit: true }
  }
  if (owned.gid !== after.gid) return undefined
  // The group is the target's: the chown was made, and what follows it perhaps not.
  const chowned = seen.gid !== after.gid && (owned.mode === seen.mode || isStripped(owned.mode, meant.mode))
  const chmodded = owned.mode === after.mode && (seen.gid !== after.gid || !record.seenWhole)
  if (whole && chowned && !isStripped(owned.mode, meant.mode)) return owned
  if (!chowned && !chmodded) return undefined
  return isUntouched(record, now.stat) ? { gid: owned.gid, mode: meant.mode } : { ...owned, forfeit: true }
}

/**
 * Whether the content is the recorded one, so that privileges a chown took may be given back. An owner can write and
 * set mtime back: where that is not root, it is a witness only for set-uid, which is the owner's own to give.
 */
export function isUntouched(record: InodeRecord, now: Stat): boolean {
  const ownersOnly = record.capability === undefined && (record.meant.mode & SET_GID) === 0
  const witness = now.uid === 0 || (ownersOnly && now.uid === record.uid)
  return witness && record.modified === now.modified && record.size === now.size
}

/** The capability that an inode has when it is as it should be. */
export function dueCapability({ forfeited, capability }: InodeRecord): Uint8Array | undefined {
  return forfeited ? undefined : capability
}

export function sameBytes(a: Uint8Array | undefined, b: Uint8Array | undefined): boolean {
  return a === undefined || b === undefined ? a === b : Buffer.compare(a, b) === 0
}

/**
 * The record of a change about to be made.
 * @param record undefined: the inode was never recorded, and what it is now is what restore will put back
 * @param meant what the inode would be if no call had been interrupted at it
 * @param after and `aclAfter`: what to make of it
 */
export function recordOf(
  record: InodeRecord | undefined,
  found: Found,
  path: Uint8Array,
  meant: Meant,
  after: Ownership,
  aclAfter: Uint8Array | undefined,
): InodeRecord {
  const { stat } = found
  const capability = record ? record.capability : found.capability
  const aclBefore = record ? record.acl.before : found.acl
  const hasAcl = aclBefore !== undefined || found.acl !== undefined || aclAfter !== undefined
  const forfeited = record?.forfeited === true || meant.forfeit === true
  return {
    inode: stat.inode,
    born: stat.born,
    path: record?.path ?? path,
    uid: record?.uid ?? stat.uid,
    before: record?.before ?? meant,
    capability,
    acl: hasAcl ? { before: aclBefore, seen: found.acl, after: aclAfter } : NO_ACL,
    modified: stat.modified,
    size: stat.size,
    seen: record ? ownershipOf(stat) : meant,
    seenWhole: sameBytes(forfeited ? undefined : capability, found.capability),
    meant,
    forfeited,
    after,
    baseline: record?.baseline,
    settled: false,
  }
}
