import type { Stat } from '../../host/host.ts'
import type { Found, InodeRecord } from '../inode/record.ts'
import type { LeftReason } from './report.ts'

/** What is to happen to an inode that was looked at closely. */
export interface Decision {
  /** Its change, to be recorded first. */
  change?: InodeRecord
  /** The change leaves it without its privileges. */
  forfeits?: boolean
  /** To be recorded though nothing is changed: whatever an interrupted call had in mind for it, it is its user's now. */
  settle?: InodeRecord
  leave?: LeftReason
}

/** What a walk does with the inodes it meets: pure, but for what it was told when it was made. */
export interface Task {
  /** `look`: to be held and decided on; `right`: nothing to do; `passed`: not this task's concern. */
  glance(stat: Stat): 'look' | 'right' | 'passed' | { leave: LeftReason }
  /** Whether the decision needs what the journal holds of the inode. */
  asksFor(stat: Stat): boolean
  decide(found: Found, path: Uint8Array, record: InodeRecord | undefined): Decision
  /** What was made as recorded need not be remembered. */
  readonly forgets: boolean
}

/** What an interrupted call had in mind for the inode is not made any more. */
export function leaveToUser(record: InodeRecord): Decision {
  return { leave: 'changed since by its user', ...(record.settled ? {} : { settle: record }) }
}
