import { isDirectory, type Stat } from '../../host/host.ts'
import { ownershipOf, SET_GID, SET_IDS, whyUntouchable } from '../inode/policy.ts'
import {
  type Found,
  type InodeRecord,
  isUntouched,
  type Meant,
  meantState,
  nextRecord,
  sameBytes,
} from '../inode/record.ts'
import { leaveToUser, type Task } from './task.ts'

/** Puts recorded inodes back to what they were. @param isForced also puts back what its users changed since */
export function restoreTask(isForced: boolean): Task {
  return {
    forgets: true,
    glance: (stat) => (whyUntouchable(stat) ? 'passed' : 'look'),
    asksFor: () => true,

    decide(found, _path, record) {
      if (record === undefined) return {}
      const meant = meantState(record, found) ?? (isForced ? overridden(record, found) : undefined)
      if (meant === undefined) return leaveToUser(record)
      const { gid, mode } = record.before
      const forfeit = meant.forfeit === true || givesForeignSetGid(record, found.stat)
      const after = record.forfeited || forfeit ? { gid, mode: mode & ~SET_IDS } : record.before
      return { change: nextRecord(record, found, { ...meant, forfeit }, after, record.acl.before), forfeits: forfeit }
    },
  }
}

/**
 * What an inode that its users changed since is taken for, where that is to be undone. Undefined: it may be another inode
 * (there is no birth time), or was given a capability of its own. Privileges that somebody took away stay away.
 */
function overridden(record: InodeRecord, found: Found): Meant | undefined {
  const { stat, capability } = found
  if (record.born === 0n || (capability !== null && !sameBytes(capability, record.capability))) return undefined
  const owned = ownershipOf(stat)
  const isPrivileged = !isDirectory(stat) && ((record.before.mode & SET_IDS) !== 0 || record.capability !== null)
  const isWhole = (owned.mode & SET_IDS) === (record.before.mode & SET_IDS) && sameBytes(capability, record.capability)
  return { ...owned, forfeit: isPrivileged && !(isWhole && isUntouched(record, stat)) }
}

/** A user who wrote to a file may set its group's bit again, but not that of the group it had before. */
function givesForeignSetGid({ before, modified, size }: InodeRecord, now: Stat): boolean {
  if (isDirectory(now) || (before.mode & SET_GID) === 0 || before.gid === now.gid) return false
  return modified !== now.modified || size !== now.size
}
