import type { Stat } from '../host/host.ts'
import { SET_IDS, verdict } from './policy.ts'
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
    const after = record.forfeited || meant.forfeit ? { gid, mode: mode & ~SET_IDS } : record.before
    return { change: nextRecord(record, found, meant, after, record.acl.before), forfeits: meant.forfeit ?? false }
  }
}

// What no walk ever changes does not depend on the group.
const NOBODY = { group: 0, access: 'keep' } as const
