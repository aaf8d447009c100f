import { FILE_TYPE, isDirectory, type Stat } from '../../host/host.ts'
import { grantAcl } from '../inode/attributes.ts'
import {
  isRight,
  type Ownership,
  type OwnOrder,
  ownershipOf,
  PERMISSIONS,
  SET_GID,
  SET_IDS,
  same,
  wantedMode,
  wantedOwnership,
  whyUntouchable,
} from '../inode/policy.ts'
import {
  type Found,
  type InodeRecord,
  isAtBaseline,
  isUntouched,
  keyOf,
  type Meant,
  meantState,
  recordOf,
  sameBytes,
} from '../inode/record.ts'
import type { LeftReason } from './report.ts'

/** What is to happen to an inode that was looked at closely. */
interface Decision {
  /** Its change, to be recorded first. */
  change?: InodeRecord
  /** The change leaves it without its privileges. */
  forfeits?: boolean
  /** To be recorded though nothing is changed: whatever an interrupted call had in mind, it is its user's now. */
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
  readonly plain: PlainRule
  /** What was made as recorded need not be remembered. */
  readonly forgets: boolean
  /** Whether a record stays that the task would forget. */
  keeps?(record: InodeRecord): boolean
}

/** The same for inodes that have one name, no set-id bits, no capability and no ACL. */
export interface PlainRule {
  /** Whether it is one, as far as its stat says, and the decision can be left to this rule. */
  takes(stat: Stat): boolean
  /** The decision needs what the journal holds of each. */
  readonly isAsked: boolean
  /** What it is to have, unless its record says. */
  group(stat: Stat): number
  mode(stat: Stat): number
}

/** @property toBaseline to what `apply` left, where a record has that */
export interface RestoreOrder {
  isForced: boolean
  toBaseline?: boolean | undefined
}

export type TaskSpec = { do: 'meet' } | ({ do: 'restore' } & RestoreOrder) | ({ do: 'own' } & OwnSpec)

export interface OwnSpec {
  order: OwnOrder
  /** The journal was empty: there is nothing to find in it but what this walk records. */
  firstTime: boolean
  /** ctime (milliseconds) from which on an inode may have been changed by this walk. */
  started: number
  /** Keys of inodes that an interrupted call may have left half changed. */
  unfinished: ReadonlySet<string>
  /** An interrupted restore may have put inodes back without another record. */
  hasRestoreBegun: boolean
}

export function taskOf(spec: TaskSpec): Task {
  if (spec.do === 'meet') return MEET
  return spec.do === 'own' ? ownTask(spec) : restoreTask(spec)
}

/** Looks at inodes, for whoever looks on. */
const MEET: Task = {
  forgets: false,
  glance: () => 'passed',
  asksFor: () => false,
  plain: { takes: () => false, isAsked: false, group: ({ gid }) => gid, mode: ({ mode }) => mode & PERMISSIONS },
  decide: () => ({}),
}

/** Gives inodes to a group. */
function ownTask({ order, firstTime, started, unfinished, hasRestoreBegun }: OwnSpec): Task {
  const wanted = ({ stat }: Found, from: Ownership) =>
    wantedOwnership({ mode: from.mode | (stat.mode & FILE_TYPE) }, order)
  const wantedAcl = ({ stat, acl }: Found) =>
    acl === undefined || order.access === 'keep' ? acl : grantAcl(acl, isDirectory(stat) ? 0o7 : 0o6)
  // Confirmed to be as wanted once, yet different now: that is somebody's wish too, and is not undone.
  const isUsers = ({ settled, before, after, seen, acl }: InodeRecord, found: Found) => {
    const owned = ownershipOf(found.stat)
    const asLeft = same(after, owned) && sameBytes(acl.after, found.acl)
    const asPutBack = hasRestoreBegun && same(before, owned) && sameBytes(acl.before, found.acl)
    return settled && after.gid === order.group && !same(after, seen) && !asLeft && !asPutBack
  }
  return {
    forgets: false,

    glance(stat) {
      const leave = whyUntouchable(stat)
      if (leave) return { leave }
      // What is right by chance has to be recorded once more: its record says that a walk has left it otherwise.
      if (!isRight(stat, order) || hasRestoreBegun) return 'look'
      return unfinished.size > 0 && unfinished.has(keyOf(stat)) ? 'look' : 'right'
    },

    asksFor: (stat) => !firstTime || stat.changed >= started,

    plain: {
      takes: (stat) => isUnprivileged(stat) && (!firstTime || stat.changed < started),
      isAsked: !firstTime,
      group: () => order.group,
      mode: (stat) => wantedMode(stat, order),
    },

    decide(found, path, record) {
      let meant: Meant | undefined = ownershipOf(found.stat)
      if (record) {
        meant = isUsers(record, found) ? undefined : meantState(record, found)
        if (order.isForced) meant ??= overridden(record, found)
        if (meant === undefined) return leaveToUser(record)
      }
      const change = recordOf(record, found, path, meant, wanted(found, meant), wantedAcl(found))
      return { change, forfeits: meant.forfeit ?? false }
    },
  }
}

/** Restores recorded inodes. @param isForced also restores what its users changed since */
function restoreTask({ isForced, toBaseline = false }: RestoreOrder): Task {
  // A record with a baseline still has the first state, for a restore by hand.
  const keeps = ({ baseline }: InodeRecord) => toBaseline && baseline !== undefined
  return {
    forgets: true,
    keeps,
    glance: (stat) => (whyUntouchable(stat) ? 'passed' : 'look'),
    asksFor: () => true,

    plain: {
      takes: isUnprivileged,
      isAsked: true,
      group: ({ gid }) => gid,
      mode: ({ mode }) => mode & PERMISSIONS,
    },

    decide(found, path, record) {
      if (record === undefined) return {}
      const meant = meantState(record, found) ?? (isForced ? overridden(record, found) : undefined)
      if (meant === undefined) return leaveToUser(record)
      if (keeps(record) && record.settled && !meant.forfeit && isAtBaseline(record, found)) return {}
      const baseline = toBaseline ? record.baseline : undefined
      const { gid, mode, acl } = baseline ?? { ...record.before, acl: record.acl.before }
      const forfeit = meant.forfeit === true || givesForeignSetGid({ ...record, before: { gid, mode } }, found.stat)
      const after = { gid, mode: record.forfeited || forfeit ? mode & ~SET_IDS : mode }
      const change = recordOf(record, found, path, { ...meant, forfeit }, after, acl)
      return { change, forfeits: forfeit }
    },
  }
}

function isUnprivileged(stat: Stat): boolean {
  return isDirectory(stat) || (stat.mode & SET_IDS) === 0
}

/** What an interrupted call had in mind for the inode is not made any more. */
function leaveToUser(record: InodeRecord): Decision {
  return { leave: 'changed since by its user', ...(record.settled ? {} : { settle: record }) }
}

/**
 * What an inode that its users changed since is taken for, where that is to be undone. Undefined: it may be another
 * inode (there is no birth time), or was given a capability of its own. Privileges that somebody took away stay away.
 */
function overridden(record: InodeRecord, found: Found): Meant | undefined {
  const { stat, capability } = found
  if (record.born === 0n || (capability !== undefined && !sameBytes(capability, record.capability))) return undefined
  const owned = ownershipOf(stat)
  const isPrivileged = !isDirectory(stat) && ((record.before.mode & SET_IDS) !== 0 || record.capability !== undefined)
  const isWhole = (owned.mode & SET_IDS) === (record.before.mode & SET_IDS) && sameBytes(capability, record.capability)
  return { ...owned, forfeit: isPrivileged && !(isWhole && isUntouched(record, stat)) }
}

/** A user who wrote to a file may set its group's bit again, but not that of the group it had before. */
function givesForeignSetGid({ before, modified, size }: InodeRecord, now: Stat): boolean {
  if (isDirectory(now) || (before.mode & SET_GID) === 0 || before.gid === now.gid) return false
  return modified !== now.modified || size !== now.size
}
