import { restoreVolume } from '../fs-group/restore-volume.ts'
import { restoreRootBit, restoreRootBits } from '../fs-group/root-bit.ts'
import { FileError } from '../host/file-error.ts'
import { closing, type Handle, type Host, type MountedFileSystem, unless } from '../host/host.ts'
import { isKubeletVolume } from '../mount-table/kubelet-volume.ts'
import { isEmptyFile, isMounted, type MountPoint, openMountPoint, statPoint } from '../mount-table/mount-point.ts'
import { quoted, Refusal } from '../refusal/refusal.ts'
import { WorkerCrashed } from '../store/elsewhere.ts'
import { forgetMount } from '../store/forget.ts'
import { holdPlace } from '../store/leftovers.ts'
import { type MountRecord, mountRecords } from '../store/mount-record.ts'
import { mountPlace } from '../store/places.ts'
import { isUnreadable } from '../store/record.ts'
import { rootBits } from '../store/root-bit-record.ts'
import type { Session } from '../store/session.ts'
import { endDaemon, endStopped, findHangingDaemon } from '../volume/daemon.ts'
import { sweepStages } from '../volume/kind/staged.ts'
import { detachAll, setTarget } from './attach.ts'
import {
  type BusyFileSystem,
  findBusyAfterUnmount,
  findFileSystem,
  recordBusy,
  refuseBusy,
} from './busy-file-system.ts'
import { endSubPathBinds, findInVolumeDirectory, removeCsiNote, removeVolumeDirectory } from './sub-path-binds.ts'

/**
 * Removes every mount at the directory and what is remembered of it. Nothing there is a success. What kubelet asks of
 * it comes first: a damaged journal, a missing source or a state directory whose disk is full, read-only or broken is
 * told, and does not keep a pod from going.
 * @param finish is called under the mount's lock, while the record still exists, once nothing is mounted there
 * @returns what to know of a success
 * @throws {Refusal} for some time where the file system of a disk or an image is still in use: then all else is done
 */
export async function unmount(
  session: Session,
  directory: string,
  finish: (point: MountPoint) => void = () => {},
): Promise<string | undefined> {
  const { host } = session
  using point = openMountPoint(host, directory)
  const path = point?.path ?? directory
  using lock = await ignoreRecordFailure(session, () => holdPlace(session, mountPlace(session, path)))
  const record = await ignoreRecordFailure(session, () => mountRecords.read(session, path))
  // Also by a record that says nothing to this version: it was made for this directory.
  const isOnRecord = record !== undefined || (await ignoreRecordFailure(session, () => mountRecords.has(session, path)))
  if (!isOnRecord) refuseForeign(host, point)
  session.note({ decision: isOnRecord ? 'unmount' : 'nothing recorded', ...(record?.pod && { pod: record.pod }) })
  // In kubelet's order, whoever calls: a bind that stays keeps the volume's file system mounted.
  const left = isOnRecord || isKubeletVolume(path) ? endSubPathBinds(host, path) : []
  if (left.length > 0) session.warn(formatLeftover(left))
  const fileSystem = findFileSystem(session, point, record)
  using handles = new DisposableStack()
  const root = await ignoreRecordFailure(session, () => openRecordedRoot(session, point, record, handles))
  let wasInUse = false
  if (point) {
    wasInUse = await detach(session, point, record, fileSystem)
    if (isOnRecord || isKubeletVolume(path)) restoreDirectory(host, point)
    finish(point)
  }
  // Without the lock the record stays, and with it a pending restore: both are for that mount only. What cannot be read
  // stays too.
  if (lock && record) await restoreIfPending(session, record)
  if (lock && record) await restoreMountRootBit(session, record, root)
  // Else this call would keep the file system busy.
  handles.dispose()
  const busy = await findBusyAfterUnmount(session, fileSystem, record, wasInUse)
  const kept =
    lock && record
      ? await ignoreRecordFailure(session, () => forgetUnlessLeft(session, record, 'unmounted', { left, busy }))
      : undefined
  if (record) endStopped(session, record)
  if (lock) sweepStages(session)
  if (busy === undefined) return undefined
  refuseBusy(session, busy, kept?.busySince)
  session.warn(busy.reason)
  return busy.reason
}

/** What outlives the mount of a volume. */
export interface UnmountLeftover {
  /** What is in the pod's directory, one sentence part each. */
  left: readonly string[]
  busy: BusyFileSystem | undefined
}

/**
 * What kubelet does for a pod that is gone, in its place: unmounts, puts the volume back if that is pending, and removes the
 * directory (kubernetes pkg/volume/flexvolume/unmounter.go), so that kubelet removes the pod's. Call it under the mount's
 * lock. A death on the way leaves what a death of kubelet's call leaves.
 * @returns what is left, and named by its record until it is gone
 */
export async function unmountLocked(
  session: Session,
  point: MountPoint | undefined,
  record: MountRecord,
): Promise<UnmountLeftover> {
  const { host } = session
  const fileSystem = findFileSystem(session, point, record)
  const binds = endSubPathBinds(host, record.directory)
  using handles = new DisposableStack()
  const root = openRecordedRoot(session, point, record, handles)
  const wasInUse = point !== undefined && (await detach(session, point, record, fileSystem))
  if (point) restoreDirectory(host, point)
  await restoreIfPending(session, record, true)
  await restoreMountRootBit(session, record, root)
  handles.dispose()
  removeCsiNote(host, record.directory)
  const foreseen = [...binds, ...findInVolumeDirectory(host, record.directory)]
  // A crash after this leaves empty directories, which kubelet removes by itself.
  const busy = await findBusyAfterUnmount(session, fileSystem, record, wasInUse)
  const kept = forgetUnlessLeft(session, record, 'pod gone', { left: foreseen, busy })
  const left = [...binds, ...(point ? removeVolumeDirectory(host, point) : [])]
  if (kept === undefined && left.length > 0) mountRecords.write(session, { ...record, ended: 'pod gone' })
  endStopped(session, record)
  return { left, busy }
}

/** @param left as `endSubPathBinds` returns it */
export function formatLeftover(left: readonly string[]): string {
  return `the volume is unmounted, but in the directory of its pod ${left.join('; ')}: remove that, then call "modekeep heal"`
}

/**
 * The record stays while something is left, so that status, doctor and gc name it.
 * @returns the record, if it stays
 */
function forgetUnlessLeft(
  session: Session,
  record: MountRecord,
  ended: NonNullable<MountRecord['ended']>,
  { left, busy }: UnmountLeftover,
): MountRecord | undefined {
  if (left.length === 0 && busy === undefined) {
    forgetMount(session, record.directory, record.volume)
    return undefined
  }
  const kept = { ...(busy ? recordBusy(session, record, busy) : { ...record, busySince: undefined }), ended }
  if (JSON.stringify(kept) !== JSON.stringify(record)) mountRecords.write(session, kept)
  return kept
}

/** @returns whether something uses a file system that has no device to tell that by */
async function detach(
  session: Session,
  point: MountPoint,
  record: MountRecord | undefined,
  fileSystem: MountedFileSystem | undefined,
): Promise<boolean> {
  const { host } = session
  const hanging = await findHangingDaemon(session, point, record)
  if (record && hanging !== undefined) {
    host.mounts.detach(point.parent, point.name, true)
    endDaemon(session, record, hanging)
  }
  return detachAll(host, point, fileSystem?.devices.length === 0)
}

/** Opens the root of a mount whose set-gid bit is recorded: it shows the volume, whatever the source is by now. */
function openRecordedRoot(
  session: Session,
  point: MountPoint | undefined,
  record: MountRecord | undefined,
  handles: DisposableStack,
): Handle | undefined {
  if (point === undefined || record?.volume === undefined || record.given.by === 'none') return undefined
  if (!rootBits.has(session, record.volume)) return undefined
  const { inodes } = session.host
  const root = unless('ENOENT ENOTDIR', () => inodes.openEntry(point.parent, point.name))
  handles.use(closing(inodes, root))
  return root
}

/**
 * Called after the mount is detached, because one of two calls that unmount the last two mounts must find no other, and after
 * a walk is restored, because the walk may have recorded the bit.
 */
async function restoreMountRootBit(session: Session, record: MountRecord, root?: Handle): Promise<void> {
  const { volume, directory } = record
  if (volume === undefined || record.given.by === 'none') return
  await ignoreRecordFailure(session, async () => {
    await restoreRootBit(session, volume, { except: directory, mounted: root })
    // A mount of a part may have been the last one.
    await restoreRootBits(session)
  })
}

/**
 * Forgets a mount whose unmount never came, under its lock, and leaves a directory to mount on. Of a pod that is gone
 * kubelet's binds of the volume are unmounted, nothing else.
 * @param isOver the pod is gone: the volume's pending restore is run
 * @returns what is left: then the record stays
 */
export async function forgetLocked(
  session: Session,
  point: MountPoint | undefined,
  record: MountRecord,
  isOver: boolean,
): Promise<UnmountLeftover> {
  if (isOver && record.ended === 'pod gone') return unmountLocked(session, point, record)
  const fileSystem = findFileSystem(session, undefined, record)
  const left = isOver ? endSubPathBinds(session.host, record.directory) : []
  if (point) restoreDirectory(session.host, point)
  if (isOver) await restoreIfPending(session, record, true)
  if (isOver) await restoreMountRootBit(session, record)
  const busy = await findBusyAfterUnmount(session, fileSystem, record)
  forgetUnlessLeft(session, record, 'unmounted', { left, busy })
  endStopped(session, record)
  return { left, busy }
}

/** Undefined, and a warning, where the disk of the state directory fails, or a record cannot be read: that stays. */
async function ignoreRecordFailure<T>(session: Session, work: () => T | Promise<T>): Promise<T | undefined> {
  try {
    return await work()
  } catch (error) {
    if (!(error instanceof FileError) && !isUnreadable(error)) throw error
    session.warn(`unmounting anyway: ${(error as Error).message}`)
    return undefined
  }
}

function refuseForeign(host: Host, point: MountPoint | undefined): void {
  if (point === undefined || isKubeletVolume(point.path)) return
  if (!isMounted(statPoint(host, point))) return
  throw new Refusal(
    `what is mounted at ${quoted(point.path)} is not modekeep's, and it is no volume directory of kubelet's: use umount(8)`,
  )
}

/** A file that a volume lay on; what is missing stays so, and what else is there was made by somebody else. */
function restoreDirectory(host: Host, point: MountPoint): void {
  const stat = statPoint(host, point)
  if (stat !== undefined && stat !== 'broken' && isEmptyFile(stat)) setTarget(host, point, 'directory')
}

/**
 * Puts the volume back where a pod asked for that. What cannot be done now is done at the volume's next unmount.
 * @param isOver the pod is gone, so no unmount may follow: after a crash the record has to stay for the next heal
 * @throws {WorkerCrashed} if the pod is gone
 */
async function restoreIfPending(session: Session, record: MountRecord, isOver = false): Promise<void> {
  try {
    await restoreVolume(session, record)
  } catch (error) {
    if (isOver && error instanceof WorkerCrashed) throw error
    session.warn(`volume not restored, tried again at its next unmount: ${(error as Error).message}`)
  }
}
