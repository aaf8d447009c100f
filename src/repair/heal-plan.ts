import {
  type MountPoint,
  type MountPointState,
  openMountPoint,
  resolveMountPointState,
  statMountPointUnsynced,
} from '../kernel/mount-table/mount-point.ts'
import { findBusyFileSystem, findFileSystemOfMount } from '../mount/busy-file-system.ts'
import { findSubPathBinds, findVolumeLeftovers } from '../mount/sub-path-binds.ts'
import { removeEndedMountRecord, type UnmountLeftover } from '../mount/unmount.ts'
import { tryAcquireRecordLock } from '../state/locks.ts'
import { isRecordedMount, type MountRecord, mountRecords } from '../state/mount-record.ts'
import { locateMountRecords } from '../state/record-directories.ts'
import type { Session } from '../state/session.ts'
import { parseRootVolumeId } from '../state/volume-id.ts'
import {
  explainUserChanges,
  formatApplyCommand,
  formatSkippedByReason,
  hasRejectedInodes,
  isVolumeAwaitingRestore,
  type VolumeRecord,
  volumeRecords,
} from '../state/volume-record.ts'
import type { MountState } from './state.ts'

/** The observed state of a recorded mount. */
export interface HealPlanInput extends MountPointState {
  record: MountRecord
  boot: string
  /** The topmost mount shows the same directory or file as the record's source. */
  showsSource: boolean
  /** The mount is of an earlier boot, and its last unmount must restore the volume, which it finds by this record. */
  awaitsRestore: boolean
  /** The reason why its file system is busy, though nothing is mounted. */
  busyReason?: string | undefined
}

export interface HealPlan {
  /** The state as far as the mount table shows it. Whether the source was replaced needs a check of the source. */
  state: MountState
  /**
   * `mount`: do what kubelet's next call would do. `forget`: remove the record of a mount that is over. `leave`: change
   * nothing, because modekeep must not decide.
   */
  action: 'mount' | 'forget' | 'leave'
  reason: string
}

/** A recorded mount, its mount point and its plan. The point is open only during the callback. */
export interface JudgedMount {
  record: MountRecord
  /** Undefined if the directory's parent does not exist. */
  point: MountPoint | undefined
  plan: HealPlan
  /** Leftovers that keep kubelet from removing the pod's directory, if the mount is over. */
  left: string[]
}

/** Judges without the lock: for a dry run, and because kubelet's calls must not wait for a source that hangs. */
export async function judgeMount<T>(
  session: Session,
  record: MountRecord,
  work: (judged: JudgedMount) => T | Promise<T>,
): Promise<T> {
  const { host } = session
  using point = openMountPoint(host, record.directory)
  const seen: MountPointState = point
    ? resolveMountPointState(host, point, statMountPointUnsynced(host, point))
    : { mounted: undefined, target: 'missing' }
  const boot = host.bootId()
  const view = {
    ...seen,
    showsSource: isVolumeShownByMount(record, seen.mounted),
    // The check reads a file, and only mounts of an earlier boot need it.
    awaitsRestore: record.boot !== boot && isVolumeAwaitingRestore(session, record.volume),
    busyReason: findBusyFileSystemReason(session, record, seen),
  }
  const plan = planMountHeal({ record, boot, ...view })
  const isOver = plan.action === 'forget' && plan.state === 'orphaned' && record.ended !== undefined
  return await work({ record, point, plan, left: isOver ? findMountLeftovers(session, record) : [] })
}

/** Only a mount that is over is checked: a missing one is mounted again, from the same file system. */
function findBusyFileSystemReason(
  session: Session,
  record: MountRecord,
  { mounted, target }: MountPointState,
): string | undefined {
  const isOver = mounted === undefined && (record.ended !== undefined || target === 'missing')
  const fileSystem = isOver ? findFileSystemOfMount(session, undefined, record) : undefined
  if (fileSystem === undefined) return undefined
  // Without a disk and a recorded use its device number may be another file system's already.
  const { devices, copyNamespaces = devices.length > 0 ? undefined : [] } = fileSystem
  return findBusyFileSystem(session.host, { ...fileSystem, copyNamespaces }, record.source)?.reason
}

function findMountLeftovers({ host }: Session, { directory, ended }: MountRecord): string[] {
  return [...findSubPathBinds(host, directory), ...(ended === 'pod gone' ? findVolumeLeftovers(host, directory) : [])]
}

/**
 * Judges again under the lock, where every change is decided.
 * @returns 'locked' if a call has the lock, 'gone' if the record was removed meanwhile
 */
export async function judgeMountLocked<T>(
  session: Session,
  directory: string,
  work: (judged: JudgedMount) => T | Promise<T>,
): Promise<T | 'locked' | 'gone'> {
  using lock = tryAcquireRecordLock(session, locateMountRecords(session, directory))
  if (lock === undefined) return 'locked'
  const record = mountRecords.read(session, directory)
  return record ? await judgeMount(session, record, work) : 'gone'
}

/** Runs the pending restore of a deleted pod. Must be called under the lock. @returns the leftovers, like `removeEndedMountRecord` */
export function forgetEndedMount(session: Session, { record, point, plan }: JudgedMount): Promise<UnmountLeftover> {
  return removeEndedMountRecord(session, point, record, plan.state === 'orphaned')
}

/** Compares the inode number of the volume's root with that of the mount's. */
function isVolumeShownByMount(
  { volume, mounted: recorded }: MountRecord,
  mounted: MountPointState['mounted'],
): boolean {
  if (mounted === undefined || mounted === 'broken' || volume === undefined) return false
  return mounted.device === recorded?.device && parseRootVolumeId(volume)?.inode === mounted.inode
}

/** Plans the heal of a recorded mount that no call uses. Pure. */
export function planMountHeal(view: HealPlanInput): HealPlan {
  const { record, boot, mounted, target } = view
  const { replaces } = record
  const isMissing = mounted === undefined
  if (view.busyReason !== undefined) return { state: 'busy', action: 'leave', reason: view.busyReason }
  if (isMissing && target === 'missing') return { state: 'orphaned', action: 'forget', reason: 'its directory is gone' }
  if (record.boot !== boot) {
    if (!isMissing) return FOREIGN_MOUNT_PLAN
    return { state: 'missing', action: view.awaitsRestore ? 'leave' : 'forget', reason: 'the node was rebooted' }
  }
  if (isMissing && record.ended !== undefined) return { state: 'orphaned', action: 'forget', reason: 'it is unmounted' }
  if (record.mounted === undefined) {
    return isMissing ? createRemountPlan('interrupted', 'the call that mounted it was interrupted') : FOREIGN_MOUNT_PLAN
  }
  if (isMissing) return createRemountPlan('missing', 'it is not mounted')
  if (mounted === 'broken') return createRemountPlan('stale', 'it does not respond')
  if (isRecordedMount(record, view)) return createRemountPlan('healthy', '')
  if (replaces?.mountId === String(mounted.mountId))
    return createRemountPlan('interrupted', 'its replacement was interrupted')
  return view.showsSource ? createRemountPlan('stale', 'its source is mounted over it once more') : FOREIGN_MOUNT_PLAN
}

function createRemountPlan(state: MountState, reason: string): HealPlan {
  return { state, action: 'mount', reason }
}

/** The user who mounted it may need it. */
const FOREIGN_MOUNT_PLAN: HealPlan = {
  state: 'unknown',
  action: 'leave',
  reason: 'something that modekeep does not know is mounted there: unmount it, or delete the pod',
}

/**
 * Finds a change of a walked volume that others made since its group was applied.
 * @param walked the record if it was read already; undefined while a call uses the volume
 */
export function findVolumeChange(
  session: Session,
  { given, volume }: MountRecord,
  walked: VolumeRecord | undefined,
): string | undefined {
  if (given.by !== 'walk' || volume === undefined) return undefined
  const record = walked ?? volumeRecords.find(session, volume).record
  return record && explainUserChanges(record)
}

/** Explains why the volume's root, or other inodes, do not have the pod's group. */
export function explainPartialGroup(
  session: Session,
  { given, volume, source = '' }: MountRecord,
  walked: VolumeRecord | undefined,
  rootGroup: number | undefined,
): string | undefined {
  if (given.by !== 'walk' || volume === undefined) return undefined
  const record = walked ?? volumeRecords.find(session, volume).record
  const { skipped, groupAccess = 'keep' } = record ?? {}
  const { group } = given
  const isRootOther = rootGroup !== undefined && rootGroup !== group
  const facts = [
    ...(isRootOther ? [`the root of ${source} has group ${rootGroup} and not ${group}, which modekeep applied`] : []),
    ...(skipped && hasRejectedInodes(skipped) ? [formatSkippedByReason(group, skipped)] : []),
  ]
  if (facts.length === 0) return undefined
  return `${facts.join('; ')}: remove the cause, then ${formatApplyCommand({ volume, source, group, groupAccess })} applies the group again`
}
