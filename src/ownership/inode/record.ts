import type { Stat } from '../../kernel/host.ts'
import { extractOwnership, isModeStrippedByChown, isSameOwnership, type Ownership, SET_GID_MODE_BIT } from './policy.ts'

/** The recorded states of one inode. Inode numbers are reused, so `inode` and `born` together identify it. */
export interface InodeRecord {
  inode: bigint
  born: bigint
  /**
   * Path below the volume's root, for messages only; a walk never opens it. The beginning of a long path is cut off.
   */
  path: Uint8Array
  uid: number
  before: Ownership
  /** The `security.capability` attribute, which a chown drops. */
  capability: Uint8Array | undefined
  acl: RecordedAcls
  /**
   * mtime (nanoseconds) and size when last recorded. They show whether the content still is the one that had the
   * privileges.
   */
  modified: bigint
  size: bigint
  /** State when last recorded. `capabilityIntact`: the inode then had the capability that it should have. */
  seen: Ownership
  capabilityIntact: boolean
  /** `seen` as it would be without an interrupted call: with the set-id bits that the call's chown dropped. */
  intended: Ownership
  /**
   * The set-id bits and the capability are never restored: a call was interrupted at this inode, and its content may
   * have changed.
   */
  forfeited: boolean
  /** Target state of the last recorded change. */
  after: Ownership
  /** State after `apply`, to which restoreOnUnmount returns. Undefined: it returns to `before`. */
  baseline?: InodeBaseline | undefined
  /**
   * False: the change may not have been made, or only in part, because the process can crash right after it wrote the
   * record.
   */
  settled: boolean
}

/** State of an inode after `apply` by hand. */
export interface InodeBaseline extends Ownership {
  /** The access ACL; undefined: none. */
  acl: Uint8Array | undefined
}

/** The access ACL when first recorded, when last recorded, and after the last recorded change; undefined: none. */
interface RecordedAcls {
  before: Uint8Array | undefined
  seen: Uint8Array | undefined
  after: Uint8Array | undefined
}

export const NO_RECORDED_ACLS: RecordedAcls = { before: undefined, seen: undefined, after: undefined }

export function formatInodeKey({ inode, born }: { inode: bigint; born: bigint }): string {
  return `${inode}-${born}`
}

/** Current state of an inode. */
export interface InodeState {
  stat: Stat
  capability: Uint8Array | undefined
  acl: Uint8Array | undefined
}

/** `forfeit`: the inode gets its group, but not the privileges that an interrupted call dropped. */
export interface IntendedOwnership extends Ownership {
  forfeit?: boolean
}

/**
 * Returns the inode's state as it would be if no call had been interrupted at it.
 * Returns undefined if a user changed it since. Such a change is a decision and stays, also where a write or a user
 * removed a set-id bit or a capability.
 */
export function resolveIntendedOwnership(record: InodeRecord, now: InodeState): IntendedOwnership | undefined {
  const { before, after, acl } = record
  // A file system without birth times shows a reused inode number only by a different owner.
  if (record.born === 0n && record.uid !== now.stat.uid) return undefined
  const owned = extractOwnership(now.stat)
  const intact = isSameBytes(getIntendedCapability(record), now.capability)
  if (intact && isSameOwnership(before, owned) && isSameBytes(now.acl, acl.before)) return owned
  if (intact && isSameOwnership(after, owned) && isSameBytes(now.acl, acl.after)) return owned
  if (intact && isInodeAtBaseline(record, now)) return owned
  // A chown drops the capability. A different capability was set by a user.
  if (record.settled || !(intact || now.capability === undefined)) return undefined
  if (isSameBytes(now.acl, acl.seen)) return resolveInterruptedOwnership(record, now, intact)
  return isSameBytes(now.acl, acl.after)
    ? resolveInterruptedOwnership(assumeAclApplied(record), now, intact)
    : undefined
}

/** Returns whether an inode has the group, mode and ACL that `apply` left. */
export function isInodeAtBaseline({ baseline }: InodeRecord, { stat, acl }: InodeState): boolean {
  return baseline !== undefined && isSameOwnership(baseline, extractOwnership(stat)) && isSameBytes(acl, baseline.acl)
}

/** Returns the record as if its ACL were set already: setting an ACL also sets the permission bits of the mode. */
function assumeAclApplied(record: InodeRecord): InodeRecord {
  const bits = (state: Ownership) => ({ ...state, mode: (state.mode & ~0o777) | (record.after.mode & 0o777) })
  return { ...record, seen: bits(record.seen), intended: bits(record.intended) }
}

function resolveInterruptedOwnership(
  record: InodeRecord,
  now: InodeState,
  intact: boolean,
): IntendedOwnership | undefined {
  const { after, seen, intended } = record
  const owned = extractOwnership(now.stat)
  if (isSameOwnership(seen, owned) && intact === record.capabilityIntact) {
    const isInterrupted = !intact || !isSameOwnership(seen, intended)
    return !isInterrupted || isFileContentAsRecorded(record, now.stat) ? intended : { ...owned, forfeit: true }
  }
  if (owned.gid !== after.gid) return undefined
  // The group is the target's, so the chown was made. The steps after it may be missing.
  const chowned =
    seen.gid !== after.gid && (owned.mode === seen.mode || isModeStrippedByChown(owned.mode, intended.mode))
  const chmodded = owned.mode === after.mode && (seen.gid !== after.gid || !record.capabilityIntact)
  if (intact && chowned && !isModeStrippedByChown(owned.mode, intended.mode)) return owned
  if (!chowned && !chmodded) return undefined
  return isFileContentAsRecorded(record, now.stat)
    ? { gid: owned.gid, mode: intended.mode }
    : { ...owned, forfeit: true }
}

/**
 * Returns whether the content is the recorded one, so that the privileges dropped by a chown may be restored.
 * An owner can write and then reset mtime. If the owner is not root, mtime is therefore trusted only for set-uid, which
 * the owner may set anyway.
 */
export function isFileContentAsRecorded(record: InodeRecord, now: Stat): boolean {
  const ownersOnly = record.capability === undefined && (record.intended.mode & SET_GID_MODE_BIT) === 0
  const isReliable = now.uid === 0 || (ownersOnly && now.uid === record.uid)
  return isReliable && record.modified === now.modified && record.size === now.size
}

/** Returns the capability that the inode should have. */
export function getIntendedCapability({ forfeited, capability }: InodeRecord): Uint8Array | undefined {
  return forfeited ? undefined : capability
}

export function isSameBytes(a: Uint8Array | undefined, b: Uint8Array | undefined): boolean {
  return a === undefined || b === undefined ? a === b : Buffer.compare(a, b) === 0
}

/**
 * Creates the record of a change that is about to be made.
 * @param record undefined: the inode was never recorded, and a restore returns to its present state
 * @param intended the state as it would be if no call had been interrupted at the inode
 * @param after the target state; `aclAfter`: the target ACL
 */
export function createInodeRecord(
  record: InodeRecord | undefined,
  state: InodeState,
  path: Uint8Array,
  intended: IntendedOwnership,
  after: Ownership,
  aclAfter: Uint8Array | undefined,
): InodeRecord {
  const { stat } = state
  const capability = record ? record.capability : state.capability
  const aclBefore = record ? record.acl.before : state.acl
  const hasAcl = aclBefore !== undefined || state.acl !== undefined || aclAfter !== undefined
  const forfeited = record?.forfeited === true || intended.forfeit === true
  return {
    inode: stat.inode,
    born: stat.born,
    path: record?.path ?? path,
    uid: record?.uid ?? stat.uid,
    before: record?.before ?? intended,
    capability,
    acl: hasAcl ? { before: aclBefore, seen: state.acl, after: aclAfter } : NO_RECORDED_ACLS,
    modified: stat.modified,
    size: stat.size,
    seen: record ? extractOwnership(stat) : intended,
    capabilityIntact: isSameBytes(forfeited ? undefined : capability, state.capability),
    intended,
    forfeited,
    after,
    baseline: record?.baseline,
    settled: false,
  }
}
