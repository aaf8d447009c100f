import { findFaultCode, quoteValue, Refusal } from '../errors/refusal.ts'
import { restoreVolume } from '../fsgroup/restore-volume.ts'
import { restoreLeftoverRootSetGid, restoreRootSetGid } from '../fsgroup/root-bit.ts'
import { deferHandleClose, type Handle, type Host, tolerateErrno } from '../kernel/host.ts'
import { isKubeletVolume } from '../kernel/mount-table/kubelet-volume.ts'
import {
  isMounted,
  type MountPoint,
  openMountPoint,
  statMountPointUnsynced,
} from '../kernel/mount-table/mount-point.ts'
import { FileError } from '../kernel/system-error.ts'
import { forgetMountRecord } from '../state/forget.ts'
import { acquireRecordLock } from '../state/locks.ts'
import { type MountRecord, mountRecords } from '../state/mount-record.ts'
import { isUnreadableRecordError } from '../state/record.ts'
import { locateMountRecords } from '../state/record-directories.ts'
import type { Session } from '../state/session.ts'
import { rootSetGidRecords } from '../state/volume-record.ts'
import { endStoppedDaemons } from '../volume/daemon.ts'
import { unmountStaleStages } from '../volume/kind/staged.ts'
import { WorkerCrashedError } from '../worker/isolated.ts'
import { replaceMountFileByDirectory } from './attach.ts'
import {
  type BusyFileSystem,
  findBusyFileSystemAfterUnmount,
  findFileSystemOfMount,
  recordBusyFileSystem,
  refuseBusyUnmount,
} from './busy-file-system.ts'
import { detachVolume } from './detach-volume.ts'
import { findVolumeLeftovers, removeCsiData, removeEmptyDirectories, unmountSubPathBinds } from './sub-path-binds.ts'

/**
 * Removes every mount at the directory, and its records. Succeeds if nothing is there. A damaged journal, a missing source
 * or a state directory on a full, read-only or broken disk is logged, and does not keep the pod from ending.
 * @param finish is called under the mount's lock, while the record still exists, once nothing is mounted there
 * @returns a message about a successful unmount, if there is one
 * @throws {Refusal} for a limited time while the file system of a disk or an image is in use: all else is done then
 */
export async function unmountPodVolume(
  session: Session,
  directory: string,
  finish: (point: MountPoint) => void = () => {},
): Promise<string | undefined> {
  const { host } = session
  using point = openMountPoint(host, directory)
  const path = point?.path ?? directory
  using lock = await ignoreRecordFailure(session, () => acquireRecordLock(session, locateMountRecords(session, path)))
  const record = await ignoreRecordFailure(session, () => mountRecords.read(session, path))
  // A record that this version cannot read counts too: it was written for this directory.
  const isOnRecord = record !== undefined || (await ignoreRecordFailure(session, () => mountRecords.has(session, path)))
  if (!isOnRecord) refuseForeignMount(host, point)
  session.note({ decision: isOnRecord ? 'unmount' : 'nothing recorded', ...(record?.pod && { pod: record.pod }) })
  // Binds are unmounted first, as kubelet does: a remaining bind keeps the volume's file system mounted.
  const left = isOnRecord || isKubeletVolume(path) ? unmountSubPathBinds(host, path) : []
  if (left.length > 0) session.warn(formatPodDirectoryLeftovers(left), 'pod-directory')
  const fileSystem = findFileSystemOfMount(session, point, record)
  using handles = new DisposableStack()
  const root = await ignoreRecordFailure(session, () => openRecordedVolumeRoot(session, point, record, handles))
  let wasInUse = false
  if (point) {
    wasInUse = await detachVolume(session, point, record, fileSystem)
    if (isOnRecord || isKubeletVolume(path)) replaceMountFileByDirectory(host, point)
    finish(point)
  }
  // Without the lock the record and a pending restore stay, because both belong to that mount. Unreadable records stay
  // too.
  if (lock && record) await restoreVolumeIfPending(session, record)
  if (lock && record) await restoreMountRootSetGid(session, record, root)
  // An open handle would keep the file system busy.
  handles.dispose()
  const busy = await findBusyFileSystemAfterUnmount(session, fileSystem, record, wasInUse)
  const kept =
    lock && record
      ? await ignoreRecordFailure(session, () => removeUnneededRecord(session, record, 'unmounted', { left, busy }))
      : undefined
  if (record) endStoppedDaemons(session, record)
  if (lock) unmountStaleStages(session)
  if (busy === undefined) return undefined
  refuseBusyUnmount(session, busy, kept?.busySince)
  session.warn(busy.reason, 'unmount-busy')
  return busy.reason
}

/** Parts of a volume that remain after its unmount. */
export interface UnmountLeftover {
  /** Leftovers in the pod's directory, one clause each. */
  left: readonly string[]
  busy: BusyFileSystem | undefined
}

/**
 * Cleans up for a deleted pod in place of kubelet: unmounts, runs a pending restore, and removes the volume's directory
 * (kubernetes pkg/volume/flexvolume/unmounter.go), so that kubelet removes the pod's. Must be called under the mount's lock.
 * A crash on the way leaves the same state as a crash of kubelet's call.
 * @returns the leftovers, which the record names until they are removed
 */
export async function unmountDeletedPodVolume(
  session: Session,
  point: MountPoint | undefined,
  record: MountRecord,
): Promise<UnmountLeftover> {
  const { host } = session
  const fileSystem = findFileSystemOfMount(session, point, record)
  const binds = unmountSubPathBinds(host, record.directory)
  using handles = new DisposableStack()
  const root = openRecordedVolumeRoot(session, point, record, handles)
  const wasInUse = point !== undefined && (await detachVolume(session, point, record, fileSystem))
  if (point) replaceMountFileByDirectory(host, point)
  await restoreVolumeIfPending(session, record, true)
  await restoreMountRootSetGid(session, record, root)
  handles.dispose()
  removeCsiData(host, record.directory)
  const foreseen = [...binds, ...findVolumeLeftovers(host, record.directory)]
  // A crash after this leaves empty directories, which kubelet removes by itself.
  const busy = await findBusyFileSystemAfterUnmount(session, fileSystem, record, wasInUse)
  const kept = removeUnneededRecord(session, record, 'pod gone', { left: foreseen, busy })
  const left = [...binds, ...(point ? removeEmptyDirectories(host, point) : [])]
  if (kept === undefined && left.length > 0) mountRecords.write(session, { ...record, ended: 'pod gone' })
  endStoppedDaemons(session, record)
  return { left, busy }
}

/** @param left the leftovers, as `unmountSubPathBinds` returns them */
export function formatPodDirectoryLeftovers(left: readonly string[]): string {
  return `the volume is unmounted, but in the directory of its pod ${left.join('; ')}: remove that, then call "modekeep heal"`
}

/**
 * Removes the record unless a leftover exists: then it stays, so that status, doctor and gc report it.
 * @returns the record, if it stays
 */
function removeUnneededRecord(
  session: Session,
  record: MountRecord,
  ended: NonNullable<MountRecord['ended']>,
  { left, busy }: UnmountLeftover,
): MountRecord | undefined {
  if (left.length === 0 && busy === undefined) {
    forgetMountRecord(session, record.directory, record.volume)
    return undefined
  }
  const kept = { ...(busy ? recordBusyFileSystem(session, record, busy) : { ...record, busySince: undefined }), ended }
  if (JSON.stringify(kept) !== JSON.stringify(record)) mountRecords.write(session, kept)
  return kept
}

/** Opens the root of a mount whose set-gid bit is recorded. It shows the volume even if the source has been replaced. */
function openRecordedVolumeRoot(
  session: Session,
  point: MountPoint | undefined,
  record: MountRecord | undefined,
  handles: DisposableStack,
): Handle | undefined {
  if (point === undefined || record?.volume === undefined || record.given.by === 'none') return undefined
  if (!rootSetGidRecords.has(session, record.volume)) return undefined
  const { inodes } = session.host
  const root = tolerateErrno('ENOENT ENOTDIR', () => inodes.openEntry(point.parent, point.name))
  handles.use(deferHandleClose(inodes, root))
  return root
}

/**
 * Restores the root's set-gid bit. Runs after the detach, because one of two calls that unmount the last two mounts must
 * find no other mount. Runs after the walk's restore, because the walk may have recorded the bit.
 */
async function restoreMountRootSetGid(session: Session, record: MountRecord, root?: Handle): Promise<void> {
  const { volume, directory } = record
  if (volume === undefined || record.given.by === 'none') return
  await ignoreRecordFailure(session, async () => {
    await restoreRootSetGid(session, volume, { except: directory, mounted: root })
    // A mount of a part may have been the last one.
    await restoreLeftoverRootSetGid(session)
  })
}

/**
 * Removes the record of a mount that kubelet never unmounted, and leaves a directory as the mount point. Must be called
 * under the mount's lock. For a deleted pod only kubelet's binds of the volume are unmounted.
 * @param isOver the pod is deleted: the volume's pending restore is run
 * @returns the leftovers: the record stays if there are any
 */
export async function removeEndedMountRecord(
  session: Session,
  point: MountPoint | undefined,
  record: MountRecord,
  isOver: boolean,
): Promise<UnmountLeftover> {
  if (isOver && record.ended === 'pod gone') return unmountDeletedPodVolume(session, point, record)
  const fileSystem = findFileSystemOfMount(session, undefined, record)
  const left = isOver ? unmountSubPathBinds(session.host, record.directory) : []
  if (point) replaceMountFileByDirectory(session.host, point)
  if (isOver) await restoreVolumeIfPending(session, record, true)
  if (isOver) await restoreMountRootSetGid(session, record)
  const busy = await findBusyFileSystemAfterUnmount(session, fileSystem, record)
  removeUnneededRecord(session, record, 'unmounted', { left, busy })
  endStoppedDaemons(session, record)
  return { left, busy }
}

/** Warns and returns undefined if the disk of the state directory fails or a record is unreadable. Such a record stays. */
async function ignoreRecordFailure<T>(session: Session, work: () => T | Promise<T>): Promise<T | undefined> {
  try {
    return await work()
  } catch (error) {
    if (!(error instanceof FileError) && !isUnreadableRecordError(error)) throw error
    session.warn(`unmounting anyway: ${(error as Error).message}`, findFaultCode(error) ?? 'cleanup-failed')
    return undefined
  }
}

function refuseForeignMount(host: Host, point: MountPoint | undefined): void {
  if (point === undefined || isKubeletVolume(point.path) || !isMounted(statMountPointUnsynced(host, point))) return
  throw Refusal.of(
    'mount-directory',
    `what is mounted at ${quoteValue(point.path)} is not modekeep's, and it is no volume directory of kubelet's`,
    'use umount(8)',
  )
}

/**
 * Runs the volume's restore if a pod requested it. A restore that fails is retried at the volume's next unmount.
 * @param isOver the pod is deleted, so no unmount may follow: after a crash the record must stay for the next heal
 * @throws {WorkerCrashedError} if `isOver`
 */
export async function restoreVolumeIfPending(session: Session, record: MountRecord, isOver = false): Promise<void> {
  try {
    await restoreVolume(session, record)
  } catch (error) {
    if (isOver && error instanceof WorkerCrashedError) throw error
    session.warn(`volume not restored, tried again at its next unmount: ${(error as Error).message}`, 'restore-pending')
  }
}
