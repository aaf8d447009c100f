import { FILE_TYPE, isDirectory } from '../../host/host.ts'
import { grantAcl } from '../inode/attributes.ts'
import {
  isRight,
  type Ownership,
  type OwnOrder,
  ownershipOf,
  same,
  wantedOwnership,
  whyUntouchable,
} from '../inode/policy.ts'
import { type Found, firstRecord, type InodeRecord, keyOf, meantState, nextRecord, sameBytes } from '../inode/record.ts'
import { leaveToUser, type Task } from './task.ts'

/** What every thread of a walk must know; it can be sent. */
export interface OwnSpec {
  order: OwnOrder
  /** The journal was empty: there is nothing to find in it but what this walk records. */
  firstTime: boolean
  /** ctime (milliseconds) from which on an inode may have been changed by this walk. */
  started: number
  /** Keys of inodes that an interrupted call may have left half changed. */
  unfinished: ReadonlySet<string>
}

/** Gives inodes to a group. */
export function ownTask({ order, firstTime, started, unfinished }: OwnSpec): Task {
  const wanted = ({ stat }: Found, from: Ownership) =>
    wantedOwnership({ mode: from.mode | (stat.mode & FILE_TYPE) }, order)
  const wantedAcl = ({ stat, acl }: Found) =>
    acl === null || order.access === 'keep' ? acl : grantAcl(acl, isDirectory(stat) ? 0o7 : 0o6)
  // Confirmed to be as wanted once, yet different now: that is somebody's wish too, and is not undone.
  const isUsers = ({ settled, after, seen, acl }: InodeRecord, found: Found) => {
    const asLeft = same(after, ownershipOf(found.stat)) && sameBytes(acl.after, found.acl)
    return settled && after.gid === order.group && !same(after, seen) && !asLeft
  }
  return {
    forgets: false,

    glance(stat) {
      const leave = whyUntouchable(stat)
      if (leave) return { leave }
      if (!isRight(stat, order)) return 'look'
      return unfinished.size > 0 && unfinished.has(keyOf(stat)) ? 'look' : 'right'
    },

    asksFor: (stat) => !firstTime || stat.changed >= started,

    decide(found, path, record) {
      if (record === undefined) {
        const seen = ownershipOf(found.stat)
        return { change: firstRecord(found, path, seen, wanted(found, seen), wantedAcl(found)) }
      }
      const meant = isUsers(record, found) ? undefined : meantState(record, found)
      if (meant === undefined) return leaveToUser(record)
      const change = nextRecord(record, found, meant, wanted(found, meant), wantedAcl(found))
      return { change, forfeits: meant.forfeit ?? false }
    },
  }
}
