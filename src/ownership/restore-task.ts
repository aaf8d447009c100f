import type { Stat } from '../host/host.ts'
import { isDirectory, SET_GID, SET_IDS, verdict } from './policy.ts'
import { type Found, type InodeRecord, meantState, nextRecord } from './record.ts'
import type { Decision, Task } from './task.ts'

/** Puts recorded inodes back to what they were. */
export class RestoreTask implements Task {
  readonly forgets = true

  glance(stat: Stat): ReturnType<Task['glance']> {
    return 'leave' in verdict(stat, NOBODY) ? 'passed' : 'look'
  }

  asksFor(): boolean {
    return true
  }

  decide(found: Found, _path: Uint8Array, record: InodeRecord | undefined): Decision {
    if (record === undefined) return {}
    const meant = meantState(record, found)
    if (meant === undefined)
      return { leave: 'changed since by its user', ...(record.settled ? {} : { settle: record }) }
    const { gid, mode } = record.before
    const forfeit = meant.forfeit === true || givesForeignSetGid(record, found.stat)
    const after = record.forfeited || forfeit ? { gid, mode: mode & ~SET_IDS } : record.before
    return { change: nextRecord(record, found, { ...meant, forfeit }, after, record.acl.before), forfeits: forfeit }
  }
}

/** A user who wrote to a file may set its group's bit again, but not that of the group it had before. */
function givesForeignSetGid({ before, modified, size }: InodeRecord, now: Stat): boolean {
  if (isDirectory(now) || (before.mode & SET_GID) === 0 || before.gid === now.gid) return false
  return modified !== now.modified || size !== now.size
}

// What no walk ever changes does not depend on the group.
const NOBODY = { group: 0, access: 'keep' } as const
