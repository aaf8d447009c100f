import type { FsGroupRequest } from '../../config/mount-request.ts'
import { FILE_TYPE, isDirectory, type Stat } from '../../kernel/host.ts'
import { grantAcl } from '../inode/attributes.ts'
import {
  computeMode,
  computeOwnership,
  extractOwnership,
  findUnchangeableType,
  isSameOwnership,
  matchesRequest,
  type Ownership,
  PERMISSIONS,
  SET_GID,
  SET_IDS,
} from '../inode/policy.ts'
import {
  createInodeRecord,
  formatInodeKey,
  type InodeRecord,
  type InodeState,
  type IntendedOwnership,
  isAtBaseline,
  isContentAsRecorded,
  isSameBytes,
  resolveIntendedOwnership,
} from '../inode/record.ts'
import type { SkipReason } from './report.ts'

/** Decision on an inspected inode. */
interface InodeDecision {
  /** The change, to be recorded first. */
  change?: InodeRecord
  /** The inode loses its privileges by the change. */
  forfeits?: boolean
  /** A record without a change: the target of an interrupted call is dropped, because a user has changed the inode. */
  settle?: InodeRecord
  skip?: SkipReason
}

/**
 * Decides what a walk does with each inode. It depends only on its arguments and on the specification it was made of.
 */
export interface WalkStrategy {
  /** `inspect`: open it and decide; `unchanged`: it is as it should be; `ignore`: the walk does not concern it. */
  classify(stat: Stat): 'inspect' | 'unchanged' | 'ignore' | { skip: SkipReason }
  /** Returns whether the decision needs the inode's record. */
  needsRecord(stat: Stat): boolean
  decide(state: InodeState, path: Uint8Array, record: InodeRecord | undefined): InodeDecision
  readonly plain: PlainStrategy
  /** Records of completed changes are dropped. */
  readonly forgetsRecords: boolean
  /** Returns whether a record is kept that would otherwise be dropped. */
  keepsRecord?(record: InodeRecord): boolean
}

/** Decides on inodes with one name, and without set-id bits, capability and ACL. */
export interface PlainStrategy {
  /** Returns whether this strategy can decide on the inode, as far as stat shows. */
  accepts(stat: Stat): boolean
  /** The decision needs the records of all inodes. */
  readonly needsRecords: boolean
  /** Target group and mode, unless the record says otherwise. */
  group(stat: Stat): number
  mode(stat: Stat): number
}

/** @property toBaseline returns to the state after `apply`, if the record has it */
export interface RestoreOptions {
  isForced: boolean
  toBaseline?: boolean | undefined
}

export type StrategySpec = { do: 'meet' } | ({ do: 'restore' } & RestoreOptions) | ({ do: 'apply' } & GroupStrategySpec)

export interface GroupStrategySpec {
  fsGroup: FsGroupRequest
  /** The journal was empty, so it has only records of this walk. */
  isFirstWalk: boolean
  /** ctime from which on this walk may have changed an inode, milliseconds. */
  startedAtMs: number
  /** Keys of inodes whose change an interrupted call may not have completed. */
  unfinished: ReadonlySet<string>
  /** An interrupted restore may have restored inodes without a new record. */
  hasRestoreBegun: boolean
}

export function createStrategy(spec: StrategySpec): WalkStrategy {
  if (spec.do === 'meet') return VISIT_ONLY
  return spec.do === 'apply' ? createGroupStrategy(spec) : createRestoreStrategy(spec)
}

/** Visits inodes only for the observer. */
const VISIT_ONLY: WalkStrategy = {
  forgetsRecords: false,
  classify: () => 'ignore',
  needsRecord: () => false,
  plain: { accepts: () => false, needsRecords: false, group: ({ gid }) => gid, mode: ({ mode }) => mode & PERMISSIONS },
  decide: () => ({}),
}

/** Applies a group. */
function createGroupStrategy({
  fsGroup,
  isFirstWalk,
  startedAtMs,
  unfinished,
  hasRestoreBegun,
}: GroupStrategySpec): WalkStrategy {
  const computeTarget = ({ stat }: InodeState, from: Ownership) =>
    computeOwnership({ mode: from.mode | (stat.mode & FILE_TYPE) }, fsGroup)
  const computeTargetAcl = ({ stat, acl }: InodeState) =>
    acl === undefined || fsGroup.access === 'keep' ? acl : grantAcl(acl, isDirectory(stat) ? 0o7 : 0o6)
  // The recorded change was confirmed, and the inode differs now: a user changed it, and that is kept.
  const isUserChange = ({ settled, before, after, seen, acl }: InodeRecord, state: InodeState) => {
    const current = extractOwnership(state.stat)
    const isAsApplied = isSameOwnership(after, current) && isSameBytes(acl.after, state.acl)
    const isAsRestored = hasRestoreBegun && isSameOwnership(before, current) && isSameBytes(acl.before, state.acl)
    return settled && after.gid === fsGroup.groupId && !isSameOwnership(after, seen) && !isAsApplied && !isAsRestored
  }
  return {
    forgetsRecords: false,

    classify(stat) {
      const skip = findUnchangeableType(stat)
      if (skip) return { skip }
      // An inode that matches by chance is recorded once more, because its record says that a walk left it otherwise.
      if (!matchesRequest(stat, fsGroup) || hasRestoreBegun) return 'inspect'
      return unfinished.size > 0 && unfinished.has(formatInodeKey(stat)) ? 'inspect' : 'unchanged'
    },

    needsRecord: (stat) => !isFirstWalk || stat.changed >= startedAtMs,

    plain: {
      accepts: (stat) => hasNoSetIds(stat) && (!isFirstWalk || stat.changed < startedAtMs),
      needsRecords: !isFirstWalk,
      group: () => fsGroup.groupId,
      mode: (stat) => computeMode(stat, fsGroup),
    },

    decide(state, path, record) {
      let intended: IntendedOwnership | undefined = extractOwnership(state.stat)
      if (record) {
        intended = isUserChange(record, state) ? undefined : resolveIntendedOwnership(record, state)
        if (fsGroup.isForced) intended ??= overrideUserChange(record, state)
        if (intended === undefined) return skipUserChange(record)
      }
      const change = createInodeRecord(
        record,
        state,
        path,
        intended,
        computeTarget(state, intended),
        computeTargetAcl(state),
      )
      return { change, forfeits: intended.forfeit ?? false }
    },
  }
}

/**
 * Restores recorded inodes.
 * @param isForced also restores inodes that a user changed since
 */
function createRestoreStrategy({ isForced, toBaseline = false }: RestoreOptions): WalkStrategy {
  // A record with a baseline is kept, for a restore to the first state by hand.
  const keepsRecord = ({ baseline }: InodeRecord) => toBaseline && baseline !== undefined
  return {
    forgetsRecords: true,
    keepsRecord,
    classify: (stat) => (findUnchangeableType(stat) ? 'ignore' : 'inspect'),
    needsRecord: () => true,

    plain: {
      accepts: hasNoSetIds,
      needsRecords: true,
      group: ({ gid }) => gid,
      mode: ({ mode }) => mode & PERMISSIONS,
    },

    decide(state, path, record) {
      if (record === undefined) return {}
      const intended =
        resolveIntendedOwnership(record, state) ?? (isForced ? overrideUserChange(record, state) : undefined)
      if (intended === undefined) return skipUserChange(record)
      if (keepsRecord(record) && record.settled && !intended.forfeit && isAtBaseline(record, state)) return {}
      const baseline = toBaseline ? record.baseline : undefined
      const { gid, mode, acl } = baseline ?? { ...record.before, acl: record.acl.before }
      const forfeit = intended.forfeit === true || givesForeignSetGid({ ...record, before: { gid, mode } }, state.stat)
      const after = { gid, mode: record.forfeited || forfeit ? mode & ~SET_IDS : mode }
      const change = createInodeRecord(record, state, path, { ...intended, forfeit }, after, acl)
      return { change, forfeits: forfeit }
    },
  }
}

function hasNoSetIds(stat: Stat): boolean {
  return isDirectory(stat) || (stat.mode & SET_IDS) === 0
}

/** Drops the target of an interrupted call, because a user has changed the inode. */
function skipUserChange(record: InodeRecord): InodeDecision {
  return { skip: 'changed since by its user', ...(record.settled ? {} : { settle: record }) }
}

/**
 * Returns the state to assume for an inode whose user's change is overridden. Privileges that a user removed stay
 * removed.
 * Returns undefined if it may be another inode (there is no birth time), or has a new capability.
 */
function overrideUserChange(record: InodeRecord, state: InodeState): IntendedOwnership | undefined {
  const { stat, capability } = state
  if (record.born === 0n || (capability !== undefined && !isSameBytes(capability, record.capability))) return undefined
  const current = extractOwnership(stat)
  const isPrivileged = !isDirectory(stat) && ((record.before.mode & SET_IDS) !== 0 || record.capability !== undefined)
  const isIntact =
    (current.mode & SET_IDS) === (record.before.mode & SET_IDS) && isSameBytes(capability, record.capability)
  return { ...current, forfeit: isPrivileged && !(isIntact && isContentAsRecorded(record, stat)) }
}

/** A user who wrote to a file may set set-gid again for its group, but not for the group it had before. */
function givesForeignSetGid({ before, modified, size }: InodeRecord, now: Stat): boolean {
  if (isDirectory(now) || (before.mode & SET_GID) === 0 || before.gid === now.gid) return false
  return modified !== now.modified || size !== now.size
}
