import { quoted, Refusal } from '../errors/refusal.ts'
import type { Handle } from '../host/host.ts'
import type { TreeLocation } from '../mount-table/tree-location.ts'
import { type GroupPolicy, isRootMatching } from '../ownership/inode/policy.ts'
import { hasEnteredAllDirectories, type WalkReport } from '../ownership/walk/report.ts'
import type { Session } from '../store/session.ts'
import { formatDisk, resolveDiskToRecord } from '../store/volume-disk.ts'
import { isTextVolume } from '../store/volume-id.ts'
import { refuseRenamed } from '../store/volume-identity.ts'
import { hasJournal, openJournal } from '../store/volume-journal.ts'
import { countSkipped, type SkippedInodes, type VolumeRecord, volumeRecords } from '../store/volume-record.ts'
import { findOtherUsers, listHolders, type OtherUsers, reserveVolume, type VolumeHolder } from './holders.ts'
import { refuseImmutable, refuseOtherGroup, refuseUnusable } from './root-access.ts'
import { removeUnusedRootBit } from './root-bit.ts'
import { walkVolume } from './walk-volume.ts'

export interface VolumeOrder extends GroupPolicy {
  volume: string
  policy: 'OnRootMismatch' | 'Always'
  source: string
  /** Path that a pod requested, if it is a part of a source. */
  asked?: string | undefined
  /** Location of the volume, if the source's path does not show it. */
  location?: TreeLocation | undefined
  /** Mount directory; undefined if no mount is made. */
  directory?: string
  pod?: string | undefined
  restoreOnUnmount: boolean
  /** A group that is applied by hand stays after the unmount of pods that request restoreOnUnmount. */
  setsBaseline?: boolean | undefined
  /** A mount of the pod exists already: it stays, even if the group cannot be applied to the root. */
  isMounted?: boolean | undefined
}

/** @property report of the walk; undefined if the root had the group already */
export interface AppliedVolume {
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
export async function applyGroupToVolume(session: Session, tree: Handle, order: VolumeOrder): Promise<AppliedVolume> {
  const { volume, source, asked, location, group, access, pod, directory } = order
  const { device } = session.host.inodes.statMountPoint(tree)
  const reservation = { volume, source, location, group, pod, directory }
  using held = await reserveVolume(session, reservation, directory, (others) =>
    refuseConflict(session, others, order, device),
  )
  refuseRenamed(session, volume, tree, source)
  const disk = resolveDiskToRecord(session, volume, tree)
  await removeUnusedRootBit(session, volume, source, tree)
  const record = volumeRecords.readUnlessDamaged(session, volume)
  const restorePending = order.restoreOnUnmount || (record?.restorePending ?? false)
  if (!needsWalk(session, tree, order)) {
    session.note({ ownership: 'the root has the group already: not walked' })
    // A user who changed the root back may have changed the rest back too.
    const hasRoot = record?.changedSince?.hasRoot ?? false
    if (record && (record.restorePending !== restorePending || hasRoot || order.setsBaseline)) {
      const changedSince = hasRoot ? undefined : record.changedSince
      const baseline = order.setsBaseline ? setBaseline(session, record) : record.baseline
      volumeRecords.write(session, { ...record, restorePending, changedSince, baseline })
    }
    return { lock: held.move(), report: undefined, skipped: record?.skipped }
  }
  if (session.host.inodes.isReadOnly(tree)) throw Refusal.of('source-read-only', formatReadOnly(source, group))
  // The same walk would skip the root again, if it is the same root.
  const isSame = record?.group === group && record.groupAccess === access && !isTextVolume(volume)
  if (isSame && record.changedSince?.hasRoot) refuseUnusable(session, tree, order, record.skipped)
  refuseImmutable(session, tree, order)
  const isRecorded = volumeRecords.has(session, volume)
  if (isRecorded && record === undefined) {
    session.warn(`the record of volume ${volume} is damaged: the volume is walked again, and a pending restore is lost`)
  }
  const base = { volume, source, disk, asked, group, groupAccess: access, restorePending, baseline: record?.baseline }
  const { report } = await walkVolume(
    session,
    tree,
    { volume, source, known: isRecorded, isDisk: location !== undefined, disk: disk && formatDisk(disk) },
    { do: 'own', order: { group, access, setGid: order.setGid, isForced: order.isForced } },
    () => volumeRecords.write(session, { ...base, complete: false }),
  )
  const next = order.setsBaseline ? { ...base, baseline: setBaseline(session, base) } : base
  // A directory that was moved meanwhile may have escaped the walk, so the next mount walks again.
  const isComplete = hasEnteredAllDirectories(report)
  const changedSince = countChanges(report, !isRootMatching(session.host.inodes.stat(tree), order))
  const skipped = countSkipped(report)
  const hasEnded = isComplete ? undefined : true
  volumeRecords.write(session, { ...next, changedSince, skipped, complete: isComplete, hasEnded })
  if (changedSince?.hasRoot) refuseUnusable(session, tree, order, skipped)
  else refuseOtherGroup(session, tree, order, report)
  return { lock: held.move(), report, skipped }
}

/** Makes the current state of the inodes the one that restoreOnUnmount returns to. @returns the recorded baseline */
function setBaseline(
  session: Session,
  { volume, group, groupAccess }: Omit<VolumeRecord, 'complete'>,
): VolumeRecord['baseline'] {
  using journal = openJournal(session, volume, true)
  journal.setBaseline()
  return { group, groupAccess }
}

const formatReadOnly = (source: string, group: number) =>
  `source ${quoted(source)} is on a read-only mount or file system of the node, so its files cannot be given group ${group}: ` +
  'make it writable on the node, or use ownership "idmap", which changes nothing, or readOnly with files that have the group already'

function countChanges({ left }: WalkReport, isRootOther: boolean): VolumeRecord['changedSince'] {
  const changed = left['changed since by its user']
  return changed && { inodes: changed.count, hasRoot: isRootOther }
}

/** Returns false if the policy checks only the root, the root is as after a walk, and no walk was interrupted. */
export function needsWalk(session: Session, tree: Handle, order: VolumeOrder): boolean {
  const { volume, policy, group, access } = order
  if (policy === 'Always' || order.isForced) return true
  const record = volumeRecords.readUnlessDamaged(session, volume)
  const wasWalked = hasJournal(session, volume) || volumeRecords.has(session, volume)
  // A walk with access "grant" has also done the work of "keep".
  const isAsRequested = record?.group === group && (record.groupAccess === access || record.groupAccess === 'grant')
  const isFinished = record ? record.complete && isAsRequested : !wasWalked
  return !isFinished || !isRootMatching(session.host.inodes.stat(tree), order)
}

/** @throws {Refusal} that names the conflicting mount, which exists or is being made */
export function refuseOtherUsers(session: Session, order: VolumeOrder, device: number): void {
  refuseConflict(session, findOtherUsers(session, order, order.directory), order, device)
}

function refuseConflict(
  session: Session,
  others: OtherUsers,
  { volume, source, group, pod }: VolumeOrder,
  device: number,
): void {
  // A mount that was never completed has no recorded device.
  const copy = others.mounts.find(
    (other) => other.volume === volume && other.mounted !== undefined && other.mounted.device !== device,
  )
  if (copy) {
    throw Refusal.of(
      'identity-twice',
      `${source} and ${copy.source} are two file systems with the same identity (a copied disk or image?), so their records cannot be distinguished`,
      `give one a new UUID, or use ownership "idmap" or "none" for it`,
    )
  }
  refuseLostMount(session, others, group)
  const other = listHolders(others).find((holder) => ![undefined, group].includes(readGroupOnDisk(holder)))
  if (other === undefined) return
  session.note({ heldBy: { pod: other.pod, source: other.source, directory: other.directory } })
  throw Refusal.of(
    'group-conflict',
    `the volume belongs to group ${readGroupOnDisk(other)} while ${describeHolder(pod, other)}, so group ${group} cannot have it`,
    'use ownership "idmap", give both pods the same fsGroup, or wait until that pod is gone',
  )
}

/** @throws {Refusal} if a pod relies on an unknown group of the volume, which may be another one */
function refuseLostMount(session: Session, { lost }: OtherUsers, group: number): void {
  const other = lost.find((mount) => mount.group !== group)
  if (other === undefined) return
  session.note({ heldBy: other })
  throw Refusal.of(
    'mount-unrecorded',
    'another pod uses the volume or a part of it, and the record of its mount is lost, so nobody can tell which group it relies on',
    'delete that pod ("modekeep status" on the node names its directory), then this one is mounted',
  )
}

/** Describes a holder for a pod's events, which must not disclose other namespaces. The log has all details. */
function describeHolder(reader: string | undefined, { pod, source, directory }: VolumeHolder): string {
  const [readerNamespace, holderNamespace] = [extractNamespace(reader), extractNamespace(pod)]
  if (readerNamespace !== undefined && readerNamespace !== holderNamespace)
    return 'a pod of another namespace uses it or a part of it'
  return `pod ${pod ?? '(unnamed)'} uses ${source} (${directory})`
}

function extractNamespace(pod: string | undefined): string | undefined {
  return pod?.split('/', 1)[0]
}

/** Returns the group that a mount applied to its volume, or that its map expects on disk; undefined if none. */
export function readGroupOnDisk(holder: VolumeHolder): number | undefined {
  if (!('given' in holder)) return holder.group
  const { given } = holder
  return given.by === 'walk' ? given.group : given.by === 'idmap' ? given.from : undefined
}
