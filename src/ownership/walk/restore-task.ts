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
import type { Decision, Task } from './task.ts'

/** Puts recorded inodes back to what they were. */
export class RestoreTask implements Task {
  readonly forgets = true
  readonly #isForced: boolean

  /** @param isForced also puts back what its users changed since */
  constructor(isForced: boolean) {
    this.#isForced = isForced
  }

  glance(stat: Stat): ReturnType<Task['glance']> {
    return whyUntouchable(stat) ? 'passed' : 'look'
  }

  asksFor(): boolean {
    return true
  }

  decide(found: Found, _path: Uint8Array, record: InodeRecord | undefined): Decision {
    if (record === undefined) return {}
    const meant = meantState(record, found) ?? (this.#isForced ? overridden(record, found) : undefined)
    if (meant === undefined)
      return { leave: 'changed since by its user', ...(record.settled ? {} : { settle: record }) }
    const { gid, mode } = record.before
    const forfeit = meant.forfeit === true || givesForeignSetGid(record, found.stat)
    const after = record.forfeited || forfeit ? { gid, mode: mode & ~SET_IDS } : record.before
    return { change: nextRecord(record, found, { ...meant, forfeit }, after, record.acl.before), forfeits: forfeit }
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
