import { dirname } from 'node:path'
import { isSameMountRequest, type MountRequest } from '../../config/mount-request.ts'
import { quoteValue, Refusal } from '../../errors/refusal.ts'
import { getErrno, type Host } from '../../kernel/host.ts'
import {
  CSI_DRIVER_NAME,
  CSI_VOLUME_DATA_FILE,
  isCsiVolume,
  parseCsiDriverName,
} from '../../kernel/mount-table/kubelet-volume.ts'
import {
  isMounted,
  type MountPoint,
  openMountPoint,
  resolveMountPointState,
  statMountPointUnsynced,
} from '../../kernel/mount-table/mount-point.ts'
import { FileError, hasCallSucceeded } from '../../kernel/system-error.ts'
import { CSI_WORKER_VERB } from '../../kernel/worker-process.ts'
import { MOUNT_POINT_DIRECTORY_MODE } from '../../mount/attach.ts'
import { mountPodVolume } from '../../mount/mount.ts'
import { findVolumeLeftovers } from '../../mount/sub-path-binds.ts'
import { unmountPodVolume } from '../../mount/unmount.ts'
import { endAbandonedLockHolder } from '../../state/lock-holders.ts'
import { tryAcquireRecordLock } from '../../state/locks.ts'
import { isRecordedMount, mountRecords } from '../../state/mount-record.ts'
import { isUnreadableRecordError } from '../../state/record.ts'
import { locateMountRecords, readTargetOrigin, writeTargetOrigin } from '../../state/record-directories.ts'
import { type Session, warnOnFailure } from '../../state/session.ts'
import { CsiCallFailure } from './worker-tasks.ts'

/**
 * Mounts as FlexVolume's `mount` does, and creates the directory.
 * @throws {Refusal} with a message for the pod's author; {CsiCallFailure} ALREADY_EXISTS if the target is published with other
 *   options; system errors
 * @returns whether an earlier call had published it
 */
export async function publishVolume(session: Session, request: MountRequest): Promise<boolean> {
  let isCreated = false
  try {
    const { wasReady = false } = await mountPodVolume(session, request, (point) => {
      isCreated = prepareTargetDirectory(session, request, point)
    })
    return wasReady
  } catch (error) {
    if (isCreated)
      warnOnFailure(session, 'could not remove the target', () =>
        removeCreatedTargetDirectory(session, request.directory),
      )
    throw error
  }
}

/** The caller holds the mount's lock. @returns whether it has created the directory */
function prepareTargetDirectory(session: Session, request: MountRequest, point: MountPoint): boolean {
  const { host } = session
  const record = mountRecords.readUnlessDamaged(session, point.path)
  const stat = statMountPointUnsynced(host, point)
  if (stat === undefined) {
    writeTargetOrigin(session, point.path, 'made')
    // If there is a record, an interrupted call has removed the directory, and the mount creates it again.
    if (record === undefined) host.inodes.createDirectory(point.parent, point.name, MOUNT_POINT_DIRECTORY_MODE)
    return record === undefined
  }
  const { mounted } = resolveMountPointState(host, point, stat)
  if (!isRecordedMount(record, { mounted, boot: host.bootId() })) {
    const isFirst = record === undefined && readTargetOrigin(session, point.path) === undefined
    if (isFirst) writeTargetOrigin(session, point.path, 'found')
    return false
  }
  if (isSameMountRequest(record.request, request)) return false
  throw new CsiCallFailure(
    'ALREADY_EXISTS',
    `target_path ${quoteValue(point.path)} is published with other options: delete the pod to apply those of now`,
  )
}

/** Removes the directory of a failed mount, if it is empty. */
function removeCreatedTargetDirectory(session: Session, directory: string): void {
  const { host } = session
  using point = openMountPoint(host, directory)
  if (point === undefined) return
  using lock = tryLockTargetDirectory(session, point.path)
  // Another publication of the target uses the directory.
  if (lock === undefined || mountRecords.has(session, point.path)) return
  hasCallSucceeded(() => host.inodes.removeDirectory(point.parent, point.name))
}

/** Returns an empty lock if the state directory is unusable, because no other call can publish then. */
function tryLockTargetDirectory(session: Session, path: string): Disposable | undefined {
  try {
    return tryAcquireRecordLock(session, locateMountRecords(session, path))
  } catch (error) {
    if (!(error instanceof FileError)) throw error
    return new DisposableStack()
  }
}

interface TargetPublicationState {
  /** If false, nothing was published there, and nothing is done. */
  isPublished: boolean
  /** Whether publish created the directory, which is removed then. */
  isMade: boolean
}

/**
 * Unmounts a target, and removes the directory if publish created it. Succeeds without a change if nothing was published.
 * Ends a publication that a worker of an earlier server still runs, because the deletion of a pod waits for no walk.
 * @param driver the name of the driver that kubelet calls
 * @throws as `publishVolume`
 */
export async function unpublishVolume(session: Session, directory: string, driver = CSI_DRIVER_NAME): Promise<void> {
  endRunningPublication(session, directory)
  const { isPublished, isMade } = findTargetPublicationState(session, directory, driver)
  if (!isPublished) return session.note({ decision: 'nothing published' })
  let failure: unknown
  await unmountPodVolume(session, directory, (point) => {
    try {
      if (isMade) removeTargetDirectory(session.host, point)
      else refuseNonEmptyTarget(session.host, point)
    } catch (error) {
      // The record is removed in any case.
      failure = error
    }
  })
  if (failure !== undefined) throw failure
}

function endRunningPublication(session: Session, directory: string): void {
  using point = openMountPoint(session.host, directory)
  const pid = endAbandonedLockHolder(session, locateMountRecords(session, point?.path ?? directory), CSI_WORKER_VERB)
  if (pid !== undefined) session.note({ ended: pid })
}

function findTargetPublicationState(session: Session, directory: string, driver: string): TargetPublicationState {
  const { host } = session
  using point = openMountPoint(host, directory)
  const path = point?.path ?? directory
  const isOfKubelet = isCsiVolume(path)
  try {
    const { record, problem } = mountRecords.find(session, path)
    const origin = readTargetOrigin(session, path)
    if (record !== undefined || problem !== undefined || origin !== undefined) {
      const isPublished = record?.lifecycle !== undefined || origin !== undefined || isOfKubelet
      return { isPublished, isMade: isPublished && origin !== 'found' }
    }
  } catch (error) {
    if (!(error instanceof FileError) && !isUnreadableRecordError(error)) throw error
    // A pod can be deleted without the state directory too.
    return { isPublished: isOfKubelet, isMade: isOfKubelet }
  }
  // The records may be lost. Kubelet's note contains the driver of the volume.
  const isPublished = isOfKubelet && (readTargetDriverName(host, path) ?? driver) === driver
  return { isPublished, isMade: point !== undefined && isMounted(statMountPointUnsynced(host, point)) }
}

/** Reads the driver from kubelet's note of a CSI volume. */
function readTargetDriverName({ files }: Host, path: string): string | undefined {
  return parseCsiDriverName(files.readForeign(`${dirname(path)}/${CSI_VOLUME_DATA_FILE}`) ?? '')
}

function removeTargetDirectory({ inodes }: Host, point: MountPoint): void {
  try {
    inodes.removeDirectory(point.parent, point.name)
  } catch (error) {
    const code = getErrno(error)
    if (code === 'ENOENT') return
    if (code !== 'ENOTEMPTY' && code !== 'ENOTDIR') throw error
    throw createNonEmptyTargetRefusal(point)
  }
}

/** Kubelet removes an empty directory itself. @throws {Refusal} if the directory is not empty */
function refuseNonEmptyTarget(host: Host, point: MountPoint): void {
  if (findVolumeLeftovers(host, point.path).length > 0) throw createNonEmptyTargetRefusal(point)
}

function createNonEmptyTargetRefusal({ path }: MountPoint): Refusal {
  return Refusal.of(
    'target-filled',
    `target_path ${quoteValue(path)} is unmounted, but is no empty directory`,
    'look at what is there, and remove it',
  )
}
