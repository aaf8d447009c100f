import type { FsGroupRequest } from '../config/mount-request.ts'
import { quoteValue, Refusal, UnknownFormatRefusal } from '../errors/refusal.ts'
import type { Handle } from '../kernel/host.ts'
import type { TreeLocation } from '../kernel/mount-table/tree-location.ts'
import { computeGroupBits, formatOwnership, readAcl } from '../ownership/inode/attributes.ts'
import { isRootMatchingFsGroup, isRootPrivateToOwner } from '../ownership/inode/policy.ts'
import { isEveryDirectoryEntered, type WalkReport } from '../ownership/walk/report.ts'
import type { Session } from '../state/session.ts'
import { formatJournalDisk, resolveDiskToRecord } from '../state/volume-disk.ts'
import { isTextVolumeId } from '../state/volume-id.ts'
import { refuseRenamedVolume } from '../state/volume-identity.ts'
import { hasVolumeJournal, openJournal } from '../state/volume-journal.ts'
import {
  countSkippedByReason,
  formatApplyCommand,
  formatSkippedByReason,
  type SkippedInodes,
  type VolumeRecord,
  volumeRecords,
} from '../state/volume-record.ts'
import {
  describeVolumeUser,
  findOtherVolumeUsers,
  listVolumeUsers,
  type OtherVolumeUsers,
  readGroupOnDisk,
  reserveVolume,
} from './holders.ts'
import { refuseImmutableRoot, refuseRootWithOtherGroup } from './refused-root.ts'
import { removeUnusedRootSetGid } from './root-bit.ts'
import { walkVolume } from './walk-volume.ts'

/** A volume to which a group is applied, and the mount that needs it. */
export interface FsGroupTarget {
  volume: string
  source: string
  /** Path that a pod requested, if it is a part of a source. */
  requestedPath?: string | undefined
  /** Location of the volume, if the source's path does not show it. */
  location?: TreeLocation | undefined
  /** Mount directory; undefined for an operator's call, which makes no mount. */
  directory?: string
  pod?: string | undefined
  restoreOnUnmount: boolean
  /** The group stays after the unmount of pods that request restoreOnUnmount. */
  setsBaseline?: boolean
  /** A mount of the pod exists already: it stays, even if the group cannot be applied to the root. */
  isMounted?: boolean | undefined
  /** Is called under the volume's lock, before a walk. @throws {Refusal} to refuse it */
  confirm?(): void
}

/** @property report of the walk; undefined if the root had the group already */
interface AppliedVolumeGroup {
  lock: DisposableStack
  report: WalkReport | undefined
  skipped: SkippedInodes | undefined
}

/**
 * Applies a group to a volume by a walk, unless that is done already. The lock must be held until the mount is
 * attached, because only then other calls see that the volume is in use.
 * @throws {Refusal} if a mount with another group uses the volume or a part of it, or its records are of another disk;
 * if the group cannot be applied to the root of a new mount
 */
export async function applyGroupToVolume(
  session: Session,
  tree: Handle,
  fsGroup: FsGroupRequest,
  target: FsGroupTarget,
): Promise<AppliedVolumeGroup> {
  const { volume, source, requestedPath: asked, location, pod, directory, setsBaseline } = target
  const { groupId: group, access } = fsGroup
  const { inodes } = session.host
  const reservation = { volume, source, location, group, pod, directory }
  using held = await reserveVolume(session, reservation, directory, (others) =>
    refuseGroupConflict(session, others, group, target, inodes.statMountPoint(tree).device),
  )
  refuseRenamedVolume(session, volume, tree, source)
  const disk = resolveDiskToRecord(session, volume, tree)
  await removeUnusedRootSetGid(session, volume, source, tree)
  const { record, problem } = volumeRecords.find(session, volume)
  if (problem instanceof UnknownFormatRefusal) throw problem
  const restorePending = target.restoreOnUnmount || (record?.restorePending ?? false)
  if (!needsGroupWalk(session, tree, fsGroup, volume)) {
    session.note({ ownership: 'the root has the group already: not walked' })
    // A user who changed the root back may have changed the rest back too.
    const hasRoot = record?.changedSince?.hasRoot ?? false
    if (record && (record.restorePending !== restorePending || hasRoot || setsBaseline)) {
      const changedSince = hasRoot ? undefined : record.changedSince
      const baseline = setsBaseline ? setRestoreBaseline(session, record) : record.baseline
      volumeRecords.write(session, { ...record, restorePending, changedSince, baseline })
    }
    return { lock: held.move(), report: undefined, skipped: record?.skipped }
  }
  if (inodes.isReadOnly(tree)) {
    const reason = `source ${quoteValue(source)} is on a read-only mount or file system of the node`
    throw Refusal.of(
      'source-read-only',
      `${reason}, so its files cannot be given group ${group}`,
      READ_ONLY_VOLUME_REMEDY,
    )
  }
  target.confirm?.()
  // An operator's call reports what it could not change, and an existing mount stays.
  const isNewMount = directory !== undefined && !fsGroup.isForced && !target.isMounted
  // The same walk would skip the root again, if it is the same root.
  const isSame = record?.group === group && record.groupAccess === access && !isTextVolumeId(volume)
  if (isNewMount && isSame && record.changedSince?.hasRoot)
    refuseUnusableRoot(session, tree, fsGroup, target, record.skipped)
  // The walk would change all other inodes first.
  if (isNewMount) refuseImmutableRoot(source, inodes.stat(tree), fsGroup)
  if (problem !== undefined) {
    const loss = 'the volume is walked again, and a pending restore is lost'
    session.warn(`the record of volume ${volume} is damaged: ${loss}`, 'record-damaged')
  }
  const known = (record ?? problem) !== undefined
  const base = { volume, source, disk, asked, group, groupAccess: access, restorePending, baseline: record?.baseline }
  const begun = { ...base, complete: false }
  // A new journal keeps the record, so the record's own file needs no sync.
  const isFirst = !known && !hasVolumeJournal(session, volume)
  const firstRecord = isFirst ? volumeRecords.serialize(begun) : undefined
  const facts = { known, isDisk: location !== undefined, disk: disk && formatJournalDisk(disk), firstRecord }
  const { report } = await walkVolume(session, tree, { volume, source, ...facts }, { do: 'apply', fsGroup }, () =>
    volumeRecords.write(session, begun, { durability: isFirst ? 'none' : 'full' }),
  )
  const baseline = setsBaseline ? setRestoreBaseline(session, base) : base.baseline
  // A directory that was moved meanwhile may have escaped the walk, so the next mount walks again.
  const isComplete = isEveryDirectoryEntered(report)
  const changed = report.left['changed since by its user']
  const changedSince = changed && { inodes: changed.count, hasRoot: !isRootMatchingFsGroup(inodes.stat(tree), fsGroup) }
  const skipped = countSkippedByReason(report)
  const ended = { complete: isComplete, hasEnded: isComplete ? undefined : true, changedSince, skipped, baseline }
  // A power cut may bring back the record of the incomplete walk: then the volume is walked again, but has no baseline.
  volumeRecords.write(session, { ...base, ...ended }, { durability: setsBaseline ? 'full' : 'content' })
  if (isNewMount && changedSince?.hasRoot) refuseUnusableRoot(session, tree, fsGroup, target, skipped)
  else if (isNewMount) refuseRootWithOtherGroup(source, inodes.stat(tree), group, report.root)
  return { lock: held.move(), report, skipped }
}

/** Makes the current state of the inodes the one that restoreOnUnmount returns to. @returns the recorded baseline */
function setRestoreBaseline(
  session: Session,
  { volume, group, groupAccess }: Omit<VolumeRecord, 'complete'>,
): VolumeRecord['baseline'] {
  using journal = openJournal(session, volume, true)
  journal.setBaseline()
  return { group, groupAccess }
}

const READ_ONLY_VOLUME_REMEDY =
  'make it writable on the node, or use ownership "idmap", which changes nothing, or readOnly with files that have the group already'

/** Returns false if the policy checks only the root, the root is as after a walk, and no walk was interrupted. */
export function needsGroupWalk(session: Session, tree: Handle, fsGroup: FsGroupRequest, volume: string): boolean {
  const { groupId, access, changePolicy, isForced } = fsGroup
  if (changePolicy === 'Always' || isForced) return true
  const record = volumeRecords.readUnlessDamaged(session, volume)
  const wasWalked = hasVolumeJournal(session, volume) || volumeRecords.has(session, volume)
  // A walk with access "grant" has also done the work of "keep".
  const isAsRequested = record?.group === groupId && (record.groupAccess === access || record.groupAccess === 'grant')
  const isFinished = record ? record.complete && isAsRequested : !wasWalked
  return !isFinished || !isRootMatchingFsGroup(session.host.inodes.stat(tree), fsGroup)
}

/** @throws {Refusal} that names the conflicting mount, which exists or is being made */
export function refuseOtherVolumeUsers(session: Session, group: number, target: FsGroupTarget, device: number): void {
  refuseGroupConflict(session, findOtherVolumeUsers(session, target, target.directory), group, target, device)
}

function refuseGroupConflict(
  session: Session,
  others: OtherVolumeUsers,
  group: number,
  { volume, source, pod }: FsGroupTarget,
  device: number,
): void {
  // A mount that was never completed has no recorded device.
  const copy = others.mounts.find(({ volume: of, mounted }) => of === volume && mounted && mounted.device !== device)
  if (copy) {
    throw Refusal.of(
      'identity-twice',
      `${source} and ${copy.source} are two file systems with the same identity (a copied disk or image?), so their records cannot be distinguished`,
      `give one a new UUID, or use ownership "idmap" or "none" for it`,
    )
  }
  // The pod of a mount without a record relies on an unknown group.
  const lost = others.lost.find((mount) => mount.group !== group)
  if (lost !== undefined) {
    session.note({ heldBy: lost })
    throw Refusal.of(
      'mount-unrecorded',
      'another pod uses the volume or a part of it, and the record of its mount is lost, so the group that it relies on is unknown',
      'delete that pod ("modekeep status" on the node names its directory), then this one is mounted',
    )
  }
  const other = listVolumeUsers(others).find((holder) => ![undefined, group].includes(readGroupOnDisk(holder)))
  if (other === undefined) return
  session.note({ heldBy: { pod: other.pod, source: other.source, directory: other.directory } })
  throw Refusal.of(
    'group-conflict',
    `the volume belongs to group ${readGroupOnDisk(other)} while ${describeVolumeUser(pod, other)}, so group ${group} cannot have it`,
    'use ownership "idmap", give both pods the same fsGroup, or wait until that pod is gone',
  )
}

const READ_WRITE_SEARCH_MODE = 0o7

/**
 * Checks a root that was changed since modekeep applied the group to it. The walk skips it, and its owner's decision is
 * accepted where the pod's group can still use the volume.
 * @throws {Refusal} if the group cannot read, write and search the root
 */
function refuseUnusableRoot(
  { host: { inodes } }: Session,
  tree: Handle,
  { groupId: group, access: groupAccess }: FsGroupRequest,
  { volume, source }: FsGroupTarget,
  skipped: SkippedInodes | undefined,
): void {
  const root = inodes.stat(tree)
  if (isRootPrivateToOwner(root, group)) return
  const bits = computeGroupBits(root, readAcl(inodes, tree), group)
  if ((bits & READ_WRITE_SEARCH_MODE) === READ_WRITE_SEARCH_MODE) return
  const counts = skipped === undefined ? '' : ` (${formatSkippedByReason(group, skipped)})`
  throw Refusal.of(
    'group-changed',
    `the root of ${source} was changed since modekeep applied the pod's group: it is ${formatOwnership(root)} now, ` +
      `so group ${group} cannot read, write and search it${counts}`,
    `${formatApplyCommand({ volume, source, group, groupAccess })} applies the group to the whole volume again`,
  )
}
