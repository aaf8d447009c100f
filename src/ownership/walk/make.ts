import { errorCode, type Inodes } from '../../host/host.ts'
import { aclOf, capabilityOf } from '../inode/attributes.ts'
import type { OpenInode } from '../inode/open-inode.ts'
import { ownershipOf, same } from '../inode/policy.ts'
import { type InodeRecord, sameBytes } from '../inode/record.ts'
import { change } from './change.ts'
import { type LeftReason, leave, type WalkReport } from './report.ts'

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

export interface Made {
  made: InodeRecord[]
  /** Nothing was ever changed of them: there is nothing to remember. */
  untouched: InodeRecord[]
  /** They could not be changed this time, and are what they were. */
  refused: InodeRecord[]
}

/** Makes changes whose records are on disk, each on the inode that was looked at. */
export function makeChanges(inodes: Inodes, changes: readonly Change[], report: WalkReport): Made {
  const result: Made = { made: [], untouched: [], refused: [] }
  for (const item of changes) {
    const reason = make(inodes, item, report)
    if (reason) leave(report, reason, item.record.path)
    if (reason === undefined) result.made.push(item.record)
    else if (isUntouched(inodes, item)) result.untouched.push(item.record)
    else if (reason !== 'changed during the walk') result.refused.push(item.record)
  }
  return result
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
  if (acl !== null && !sameBytes(aclOf(inodes, handle), acl)) return false
  return capability === null || sameBytes(capabilityOf(inodes, handle), capability)
}

/** No call had been interrupted at the inode when it was recorded. */
function isWhole({ seen, meant, seenWhole }: InodeRecord): boolean {
  return seenWhole && same(seen, meant)
}
