import type { FsGroupRequest } from '../../config/mount-request.ts'
import { FILE_TYPE_MASK, isDirectory, type Stat } from '../../kernel/host.ts'
import { grantAclBits } from '../inode/attributes.ts'
import {
  CHMOD_MODE_BITS,
  computeRequestedMode,
  computeRequestedOwnership,
  extractOwnership,
  findUnchangeableInodeType,
  hasRequestedOwnership,
  isSameOwnership,
  type Ownership,
  SET_GID_MODE_BIT,
  SET_ID_MODE_BITS,
} from '../inode/policy.ts'
import {
  createInodeRecord,
  formatInodeKey,
  type InodeRecord,
  type InodeState,
  type IntendedOwnership,
  isFileContentAsRecorded,
  isInodeAtBaseline,
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
  /** Record of an inode that a user changed after an interrupted call: it drops the state that the call intended. */
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
  readonly plain: PlainInodeStrategy
  /** Records of completed changes are dropped. */
  readonly forgetsRecords: boolean
  /** Returns whether a record is kept that would otherwise be dropped. */
  keepsRecord?(record: InodeRecord): boolean
}

/** Decides on inodes with one name, and without set-id bits, capability and ACL. */
export interface PlainInodeStrategy {
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

export type WalkStrategySpec =
  | { do: 'meet' }
  | ({ do: 'restore' } & RestoreOptions)
  | ({ do: 'apply' } & GroupStrategySpec)

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

export function createWalkStrategy(spec: WalkStrategySpec): WalkStrategy {
  if (spec.do === 'meet') return VISIT_ONLY_STRATEGY
  return spec.do === 'apply' ? createGroupStrategy(spec) : createRestoreStrategy(spec)
}

/** Visits inodes only for the observer. */
const VISIT_ONLY_STRATEGY: WalkStrategy = {
  forgetsRecords: false,
  classify: () => 'ignore',
  needsRecord: () => false,
  plain: {
    accepts: () => false,
    needsRecords: false,
    group: ({ gid }) => gid,
    mode: ({ mode }) => mode & CHMOD_MODE_BITS,
  },
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
    computeRequestedOwnership({ mode: from.mode | (stat.mode & FILE_TYPE_MASK) }, fsGroup)
  const computeTargetAcl = ({ stat, acl }: InodeState) =>
    acl === undefined || fsGroup.access === 'keep' ? acl : grantAclBits(acl, isDirectory(stat) ? 0o7 : 0o6)
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
      const skip = findUnchangeableInodeType(stat)
      if (skip) return { skip }
      // An inode that matches by chance is recorded once more, because its record says that a walk left it otherwise.
      if (!hasRequestedOwnership(stat, fsGroup) || hasRestoreBegun) return 'inspect'
      return unfinished.size > 0 && unfinished.has(formatInodeKey(stat)) ? 'inspect' : 'unchanged'
    },

    needsRecord: (stat) => !isFirstWalk || stat.changed >= startedAtMs,

    plain: {
      accepts: (stat) => hasNoSetIdBits(stat) && (!isFirstWalk || stat.changed < startedAtMs),
      needsRecords: !isFirstWalk,
      group: () => fsGroup.groupId,
      mode: (stat) => computeRequestedMode(stat, fsGroup),
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
    classify: (stat) => (findUnchangeableInodeType(stat) ? 'ignore' : 'inspect'),
    needsRecord: () => true,

    plain: {
      accepts: hasNoSetIdBits,
      needsRecords: true,
      group: ({ gid }) => gid,
      mode: ({ mode }) => mode & CHMOD_MODE_BITS,
    },

    decide(state, path, record) {
      if (record === undefined) return {}
      const intended =
        resolveIntendedOwnership(record, state) ?? (isForced ? overrideUserChange(record, state) : undefined)
      if (intended === undefined) return skipUserChange(record)
      if (keepsRecord(record) && record.settled && !intended.forfeit && isInodeAtBaseline(record, state)) return {}
      const baseline = toBaseline ? record.baseline : undefined
      const { gid, mode, acl } = baseline ?? { ...record.before, acl: record.acl.before }
      const forfeit =
        intended.forfeit === true || isRestoringForeignSetGid({ ...record, before: { gid, mode } }, state.stat)
      const after = { gid, mode: record.forfeited || forfeit ? mode & ~SET_ID_MODE_BITS : mode }
      const change = createInodeRecord(record, state, path, { ...intended, forfeit }, after, acl)
      return { change, forfeits: forfeit }
    },
  }
}

function hasNoSetIdBits(stat: Stat): boolean {
  return isDirectory(stat) || (stat.mode & SET_ID_MODE_BITS) === 0
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
  const isPrivileged =
    !isDirectory(stat) && ((record.before.mode & SET_ID_MODE_BITS) !== 0 || record.capability !== undefined)
  const isIntact =
    (current.mode & SET_ID_MODE_BITS) === (record.before.mode & SET_ID_MODE_BITS) &&
    isSameBytes(capability, record.capability)
  return { ...current, forfeit: isPrivileged && !(isIntact && isFileContentAsRecorded(record, stat)) }
}

/** A user who wrote to a file may set set-gid again for its group, but not for the group it had before. */
function isRestoringForeignSetGid({ before, modified, size }: InodeRecord, now: Stat): boolean {
  if (isDirectory(now) || (before.mode & SET_GID_MODE_BIT) === 0 || before.gid === now.gid) return false
  return modified !== now.modified || size !== now.size
}
