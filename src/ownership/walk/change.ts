import { type FileChange, getErrno, type Handle, type Inodes, isDirectory, type Stat } from '../../kernel/host.ts'
import {
  ACCESS_ACL_ATTRIBUTE,
  CAPABILITY_ATTRIBUTE,
  type OpenInode,
  readAcl,
  readCapability,
} from '../inode/attributes.ts'
import {
  CHMOD_MODE_BITS,
  extractOwnership,
  isModeStrippedByChown,
  isSameOwnership,
  type Ownership,
  SET_ID_MODE_BITS,
} from '../inode/policy.ts'
import { getIntendedCapability, type InodeRecord, type InodeState, isSameBytes } from '../inode/record.ts'
import { skipDeletedInode } from './deleted-inode.ts'
import { recordSkippedInode, type SkipReason, type WalkReport } from './report.ts'

const RWX_MODE_BITS = 0o777
const GROUP_MODE_BITS = 0o070
const CTIME_SETTLE_MS = 1000

/**
 * Errors that concern one inode: it is skipped and reported, and the walk continues. Any other error stops the walk.
 */
const SKIP_REASON_BY_ERRNO: Readonly<Record<string, SkipReason>> = {
  EPERM: 'immutable or append-only',
  EROFS: 'read-only',
  EDQUOT: 'over quota',
}

/** A recorded change and its inode. */
export interface InodeChange {
  inode: OpenInode
  record: InodeRecord
}

/**
 * Makes a change whose record is on disk, on the inspected inode.
 * @returns `untouched`: the inode was never changed, so its record can be dropped; `refused`: it could not be changed
 * this time and is unchanged; `overtaken`: a user changed or deleted it first
 */
export function applyInodeChange(
  inodes: Inodes,
  item: InodeChange,
  report: WalkReport,
): 'made' | 'untouched' | 'refused' | 'overtaken' {
  const readPath = () => item.record.path
  return skipDeletedInode(report, readPath, () => {
    const reason = tryInodeChange(inodes, item, report)
    if (reason === undefined) return 'made'
    recordSkippedInode(report, reason, readPath())
    if (isInodeUnchanged(inodes, item)) return 'untouched'
    return reason === 'changed during the walk' ? 'overtaken' : 'refused'
  })
}

/**
 * Returns why the inode was skipped. An inode with a half-applied change is never skipped: the next walk must complete
 * it.
 */
function tryInodeChange(inodes: Inodes, { inode, record }: InodeChange, report: WalkReport): SkipReason | undefined {
  try {
    const outcome = changeInode(inodes, inode, record)
    if (outcome === 'overtaken') {
      if (isRecordUninterrupted(record)) return 'changed during the walk'
      throw new Error(
        'a file was changed while the change of an interrupted call was being finished; the next call goes on',
      )
    }
    report[outcome === 'changed' ? 'changed' : 'alreadyRight']++
    return undefined
  } catch (error) {
    const reason = SKIP_REASON_BY_ERRNO[getErrno(error) ?? '']
    if (reason && isRecordUninterrupted(record) && isInodeInSeenState(inodes, inode, record)) return reason
    throw error
  }
}

/** Returns whether this is the inode's first record, and its group shows that no thread has made the change. */
function isInodeUnchanged(inodes: Inodes, { inode, record }: InodeChange): boolean {
  const { before, seen, after, acl } = record
  const isFirst = isSameOwnership(before, seen) && isSameBytes(acl.before, acl.seen) && seen.gid !== after.gid
  return isFirst && inodes.ownership(inode.handle).gid === seen.gid
}

function isInodeInSeenState(inodes: Inodes, { handle, capability, acl }: OpenInode, record: InodeRecord): boolean {
  if (!isSameOwnership(extractOwnership(inodes.stat(handle)), record.seen)) return false
  if (acl !== undefined && !isSameBytes(readAcl(inodes, handle), acl)) return false
  return capability === undefined || isSameBytes(readCapability(inodes, handle), capability)
}

/** Returns whether no call had been interrupted at the inode when it was recorded. */
function isRecordUninterrupted({ seen, intended, capabilityIntact }: InodeRecord): boolean {
  return capabilityIntact && isSameOwnership(seen, intended)
}

/** Returns whether there is anything to change. After an interrupted call, an inode may lack only its capability. */
export function isInodeChangeNeeded({ capability }: InodeState, record: InodeRecord): boolean {
  const hasCapability = record.forfeited || isSameBytes(record.capability, capability)
  return (
    !hasCapability || !isSameOwnership(record.seen, record.after) || !isSameBytes(record.acl.seen, record.acl.after)
  )
}

/**
 * Makes a recorded change of an open inode. The kernel dictates the order: chown drops a file's set-id bits and
 * capability, setting an ACL sets the permission bits, and chmod on an ACL sets its mask. The capability comes last.
 * A call that would change nothing is not made: even a chown to the same group drops privileges and moves ctime.
 * @returns `overtaken`: a user changed the inode after it was inspected, and it was skipped
 */
export function changeInode(inodes: Inodes, inode: OpenInode, record: InodeRecord): 'changed' | 'right' | 'overtaken' {
  const { handle, stat } = inode
  const { seen, after, acl } = record
  const capability = getIntendedCapability(record)
  const privileged = !isDirectory(stat) && ((after.mode & SET_ID_MODE_BITS) !== 0 || capability !== undefined)
  const changesAcl = !isSameBytes(acl.seen, acl.after)
  const current = inodes.ownership(handle)
  const now = extractOwnership(current)
  // An inode that is moved ahead of the walk is visited twice, and the first visit may have changed it.
  if (!isSameOwnership(now, seen)) return isInodeChangeMade(inodes, handle, record, now) ? 'right' : 'overtaken'
  if (privileged && !hasSameContentAndCapability(inodes, inode)) return 'overtaken'
  const widens = isWideningGroupBits(now.mode, after.mode) && !hasUnchangedCtime(inode, current.changed)
  if ((changesAcl || widens) && !isSameBytes(readAcl(inodes, handle), acl.seen)) return 'overtaken'
  const changesGroup = now.gid !== after.gid
  if (changesGroup) inodes.chown(handle, after.gid)
  if (changesAcl && acl.after) inodes.setAttribute(handle, ACCESS_ACL_ATTRIBUTE, acl.after)
  else if (changesAcl) inodes.removeAttribute(handle, ACCESS_ACL_ATTRIBUTE)
  const mode = changesAcl && acl.after ? (now.mode & ~RWX_MODE_BITS) | (after.mode & RWX_MODE_BITS) : now.mode
  const changed = changesGroup || changesAcl
  if (privileged) return restoreFilePrivileges(inodes, inode, mode, record) || changed ? 'changed' : 'right'
  if (mode === after.mode) return changed ? 'changed' : 'right'
  chmodIfModeUnchanged(inodes, inode, mode, after.mode)
  return 'changed'
}

/**
 * Attribute names are listed by path. A rename moves ctime, so an inode with an old, unchanged ctime kept its name all
 * the time, and the list was its own. Listing through the handle takes five times as long.
 */
function hasUnchangedCtime({ stat, inspectedAtMs }: PlainInode, changed: number): boolean {
  return changed === stat.changed && isCtimeSettled(changed, inspectedAtMs)
}

function isCtimeSettled(changed: number, inspectedAtMs: number): boolean {
  return changed < inspectedAtMs - CTIME_SETTLE_MS
}

/**
 * Returns whether another thread can make the change: only a file's, and only if the listed attribute names were
 * certainly its own.
 * @param inspectedAtMs time before stat was called
 */
export function canDelegateFileChange(change: FileChange, inspectedAtMs: number): boolean {
  const { seenGroup, seenMode, changed, needsSameTime, group, mode } = change
  if (isDirectory({ mode: seenMode }) || (needsSameTime && !isCtimeSettled(changed, inspectedAtMs))) return false
  return seenGroup !== group || (seenMode & CHMOD_MODE_BITS) !== mode
}

/** A chmod that adds group bits would raise the mask of an ACL that was not seen. */
export function isWideningGroupBits(before: number, after: number): boolean {
  return (after & ~before & GROUP_MODE_BITS) !== 0
}

/** An inode without set-id bits, capability and ACL. */
export interface PlainInode {
  handle: Handle
  stat: Pick<Stat, 'gid' | 'mode' | 'changed'>
  inspectedAtMs: number
}

/**
 * Changes an inode that has no set-id bits, capability and ACL, like most inodes.
 * @returns undefined: the inode differs or the kernel refused, and nothing was changed; `applyInodeChange` then decides
 */
export function changePlainInode(inodes: Inodes, inode: PlainInode, after: Ownership): 'changed' | 'right' | undefined {
  const { handle, stat } = inode
  const { mode } = extractOwnership(stat)
  const current = inodes.ownership(handle)
  if (current.gid !== stat.gid || current.mode !== stat.mode) return undefined
  if (isWideningGroupBits(mode, after.mode) && !hasUnchangedCtime(inode, current.changed)) return undefined
  const changesGroup = stat.gid !== after.gid
  if (!changesGroup && mode === after.mode) return 'right'
  try {
    if (changesGroup) inodes.chown(handle, after.gid)
    else inodes.chmod(handle, after.mode)
  } catch {
    return undefined
  }
  if (changesGroup && mode !== after.mode) chmodIfModeUnchanged(inodes, inode, mode, after.mode)
  return 'changed'
}

/** chmod(2) sets all bits, so it would undo what a directory's users changed up to now. */
function chmodIfModeUnchanged(inodes: Inodes, { handle, stat }: PlainInode, before: number, after: number): void {
  if (!isDirectory(stat) || extractOwnership(inodes.ownership(handle)).mode === before) inodes.chmod(handle, after)
}

function isInodeChangeMade(inodes: Inodes, handle: Handle, record: InodeRecord, now: Ownership): boolean {
  if (!isSameOwnership(now, record.after) || !isSameBytes(readAcl(inodes, handle), record.acl.after)) return false
  return isSameBytes(readCapability(inodes, handle), getIntendedCapability(record))
}

function hasSameContentAndCapability(inodes: Inodes, { handle, stat, capability }: OpenInode): boolean {
  return isSameBytes(readCapability(inodes, handle), capability) && hasSameFileContent(inodes.stat(handle), stat)
}

/**
 * Restores a file's set-id bits and capability for the content that had them. A write drops them, so content written in
 * between must not get them.
 * @param before the mode that the file would have if nothing had dropped a bit
 */
function restoreFilePrivileges(inodes: Inodes, inode: OpenInode, before: number, record: InodeRecord): boolean {
  const { handle, stat: seen } = inode
  const { after } = record
  const capability = getIntendedCapability(record)
  const now = inodes.stat(handle)
  const { mode } = extractOwnership(now)
  // Only the bits that the chown itself dropped may be missing.
  if (!hasSameFileContent(now, seen) || (mode !== before && !isModeStrippedByChown(mode, before))) return false
  const changesMode = mode !== after.mode
  if (changesMode) inodes.chmod(handle, after.mode)
  const changesCapability = capability !== undefined && !isSameBytes(readCapability(inodes, handle), capability)
  if (changesCapability) inodes.setAttribute(handle, CAPABILITY_ATTRIBUTE, capability)
  if ((changesMode || changesCapability) && !hasSameFileContent(inodes.stat(handle), seen)) {
    inodes.chmod(handle, after.mode & ~SET_ID_MODE_BITS)
    if (readCapability(inodes, handle)) inodes.removeAttribute(handle, CAPABILITY_ATTRIBUTE)
  }
  return changesMode || changesCapability
}

function hasSameFileContent(a: Stat, b: Stat): boolean {
  return a.modified === b.modified && a.size === b.size
}
