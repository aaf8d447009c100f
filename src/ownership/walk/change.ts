import { errorCode, type FileChange, type Handle, type Inodes, isDirectory, type Stat } from '../../host/host.ts'
import { ACCESS_ACL, aclOf, CAPABILITY, capabilityOf, type OpenInode } from '../inode/attributes.ts'
import { isStripped, type Ownership, ownershipOf, PERMISSIONS, SET_IDS, same } from '../inode/policy.ts'
import { dueCapability, type Found, type InodeRecord, sameBytes } from '../inode/record.ts'
import { type LeftReason, leave, type WalkReport } from './report.ts'

const PERMISSION_BITS = 0o777
const GROUP_BITS = 0o070
const LONG_AGO_MS = 1000

/** Errors that are about one inode: it is reported and left, the walk goes on. Everything else stops it. */
const TOLERATED: Readonly<Record<string, LeftReason>> = {
  EPERM: 'immutable or append-only',
  EROFS: 'read-only',
  EDQUOT: 'over quota',
}

/** A recorded change and the inode it is for. */
export interface Change {
  inode: OpenInode
  record: InodeRecord
}

/**
 * Makes a change whose record is on disk, on the inode that was looked at.
 * @returns `untouched`: nothing was ever changed of it: nothing to remember; `refused`: it could not be changed
 *   this time, and is what it was; `overtaken`: by its user
 */
export function makeChange(
  inodes: Inodes,
  item: Change,
  report: WalkReport,
): 'made' | 'untouched' | 'refused' | 'overtaken' {
  const reason = make(inodes, item, report)
  if (reason === undefined) return 'made'
  leave(report, reason, item.record.path)
  if (isUntouched(inodes, item)) return 'untouched'
  return reason === 'changed during the walk' ? 'overtaken' : 'refused'
}

/** Why the inode was left, if it was. Half a change is not to be passed over: the next call must finish it. */
function make(inodes: Inodes, { inode, record }: Change, report: WalkReport): LeftReason | undefined {
  try {
    const outcome = change(inodes, inode, record)
    if (outcome === 'overtaken') {
      if (isWhole(record)) return 'changed during the walk'
      throw new Error(
        'a file was changed while the change of an interrupted call was being finished; the next call goes on',
      )
    }
    report[outcome === 'changed' ? 'changed' : 'alreadyRight']++
    return undefined
  } catch (error) {
    const reason = TOLERATED[errorCode(error) ?? '']
    if (reason && isWhole(record) && isAsSeen(inodes, inode, record)) return reason
    throw error
  }
}

/** First recorded for this change, and its group shows that no thread has made it. */
function isUntouched(inodes: Inodes, { inode, record }: Change): boolean {
  const { before, seen, after, acl } = record
  const isFirst = same(before, seen) && sameBytes(acl.before, acl.seen) && seen.gid !== after.gid
  return isFirst && inodes.ownership(inode.handle).gid === seen.gid
}

function isAsSeen(inodes: Inodes, { handle, capability, acl }: OpenInode, record: InodeRecord): boolean {
  if (!same(ownershipOf(inodes.stat(handle)), record.seen)) return false
  if (acl !== undefined && !sameBytes(aclOf(inodes, handle), acl)) return false
  return capability === undefined || sameBytes(capabilityOf(inodes, handle), capability)
}

/** No call had been interrupted at the inode when it was recorded. */
function isWhole({ seen, meant, seenWhole }: InodeRecord): boolean {
  return seenWhole && same(seen, meant)
}

/** Whether anything is to be changed. After an interrupted call an inode may lack nothing but its capability. */
export function isNeeded({ capability }: Found, record: InodeRecord): boolean {
  const isWhole = record.forfeited || sameBytes(record.capability, capability)
  return !isWhole || !same(record.seen, record.after) || !sameBytes(record.acl.seen, record.acl.after)
}

/**
 * Makes a recorded change of an open inode. The order is the kernel's: chown drops files' set-id bits and capabilities,
 * an ACL sets the permission bits, chmod (which on an ACL sets its mask) what is missing, the capability comes last.
 * Nothing is called that would change nothing: even a chown to the same group drops privileges and moves ctime.
 * @returns `overtaken`: somebody changed the inode after it was seen, and it was left
 */
export function change(inodes: Inodes, inode: OpenInode, record: InodeRecord): 'changed' | 'right' | 'overtaken' {
  const { handle, stat } = inode
  const { seen, after, acl } = record
  const capability = dueCapability(record)
  const privileged = !isDirectory(stat) && ((after.mode & SET_IDS) !== 0 || capability !== undefined)
  const reacl = !sameBytes(acl.seen, acl.after)
  const look = inodes.ownership(handle)
  const now = ownershipOf(look)
  // An inode that was moved ahead of the walk is met twice: the other meeting has changed it.
  if (!same(now, seen)) return isMade(inodes, handle, record, now) ? 'right' : 'overtaken'
  if (privileged && !isSameFile(inodes, inode)) return 'overtaken'
  const opens = opensGroup(now.mode, after.mode) && !isUnmoved(inode, look.changed)
  if ((reacl || opens) && !sameBytes(aclOf(inodes, handle), acl.seen)) return 'overtaken'
  const regroup = now.gid !== after.gid
  if (regroup) inodes.chown(handle, after.gid)
  if (reacl && acl.after) inodes.setAttribute(handle, ACCESS_ACL, acl.after)
  else if (reacl) inodes.removeAttribute(handle, ACCESS_ACL)
  const mode = reacl && acl.after ? (now.mode & ~PERMISSION_BITS) | (after.mode & PERMISSION_BITS) : now.mode
  const changed = regroup || reacl
  if (privileged) return giveBackPrivileges(inodes, inode, mode, record) || changed ? 'changed' : 'right'
  if (mode === after.mode) return changed ? 'changed' : 'right'
  chmodAfter(inodes, inode, mode, after.mode)
  return 'changed'
}

/**
 * Attribute names are asked for by name. A rename moves ctime, so an inode whose ctime is old and the same since had
 * its name all the time, and what was seen under it was its own. To ask through the handle takes five times as long.
 */
function isUnmoved({ stat, at }: PlainInode, changed: number): boolean {
  return changed === stat.changed && isLongAgo(changed, at)
}

function isLongAgo(changed: number, at: number): boolean {
  return changed < at - LONG_AGO_MS
}

/**
 * Whether another thread can make a change: that of a file, if its names of attributes are sure to be its own.
 * @param at when it was looked at, milliseconds
 */
export function canBeGiven(change: FileChange, at: number): boolean {
  const { seenGroup, seenMode, changed, needsSameTime, group, mode } = change
  if (isDirectory({ mode: seenMode }) || (needsSameTime && !isLongAgo(changed, at))) return false
  return seenGroup !== group || (seenMode & PERMISSIONS) !== mode
}

/** On an ACL that was not seen, chmod would raise the mask. */
export function opensGroup(before: number, after: number): boolean {
  return (after & ~before & GROUP_BITS) !== 0
}

/** What is known of an inode without set-id bits, capability and ACL. */
export interface PlainInode {
  handle: Handle
  stat: Pick<Stat, 'gid' | 'mode' | 'changed'>
  at: number
}

/**
 * `change` for most inodes.
 * @returns undefined: it is not what it was, or refuses, and nothing was changed; `makeChange` judges that
 */
export function changePlain(inodes: Inodes, inode: PlainInode, after: Ownership): 'changed' | 'right' | undefined {
  const { handle, stat } = inode
  const { mode } = ownershipOf(stat)
  const look = inodes.ownership(handle)
  if (look.gid !== stat.gid || look.mode !== stat.mode) return undefined
  if (opensGroup(mode, after.mode) && !isUnmoved(inode, look.changed)) return undefined
  const regroup = stat.gid !== after.gid
  if (!regroup && mode === after.mode) return 'right'
  try {
    if (regroup) inodes.chown(handle, after.gid)
    else inodes.chmod(handle, after.mode)
  } catch {
    return undefined
  }
  if (regroup && mode !== after.mode) chmodAfter(inodes, inode, mode, after.mode)
  return 'changed'
}

/** chmod(2) sets all bits, so what a directory's users did until this moment would be undone. */
function chmodAfter(inodes: Inodes, { handle, stat }: PlainInode, before: number, after: number): void {
  if (!isDirectory(stat) || ownershipOf(inodes.ownership(handle)).mode === before) inodes.chmod(handle, after)
}

function isMade(inodes: Inodes, handle: Handle, record: InodeRecord, now: Ownership): boolean {
  if (!same(now, record.after) || !sameBytes(aclOf(inodes, handle), record.acl.after)) return false
  return sameBytes(capabilityOf(inodes, handle), dueCapability(record))
}

function isSameFile(inodes: Inodes, { handle, stat, capability }: OpenInode): boolean {
  return sameBytes(capabilityOf(inodes, handle), capability) && isSameContent(inodes.stat(handle), stat)
}

/**
 * Gives set-id bits and the capability back to a file, for the content they belonged to: a write takes them away, and a
 * write that came in between must not get them.
 * @param before the mode the file would have, had nothing taken a bit from it
 */
function giveBackPrivileges(inodes: Inodes, inode: OpenInode, before: number, record: InodeRecord): boolean {
  const { handle, stat: seen } = inode
  const { after } = record
  const capability = dueCapability(record)
  const now = inodes.stat(handle)
  const { mode } = ownershipOf(now)
  // Only what the chown itself took may be missing.
  if (!isSameContent(now, seen) || (mode !== before && !isStripped(mode, before))) return false
  const remode = mode !== after.mode
  if (remode) inodes.chmod(handle, after.mode)
  const recap = capability !== undefined && !sameBytes(capabilityOf(inodes, handle), capability)
  if (recap) inodes.setAttribute(handle, CAPABILITY, capability)
  if ((remode || recap) && !isSameContent(inodes.stat(handle), seen)) {
    inodes.chmod(handle, after.mode & ~SET_IDS)
    if (capabilityOf(inodes, handle)) inodes.removeAttribute(handle, CAPABILITY)
  }
  return remode || recap
}

function isSameContent(a: Stat, b: Stat): boolean {
  return a.modified === b.modified && a.size === b.size
}
