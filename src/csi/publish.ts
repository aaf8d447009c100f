import { quoted } from '../errors/refusal.ts'
import { FileError, succeeds } from '../host/file-error.ts'
import { DIRECTORY_MODE } from '../mount/attach.ts'
import { mount } from '../mount/mount.ts'
import { type MountPoint, openMountPoint, resolveMountPointState, statPoint } from '../mount-table/mount-point.ts'
import { isSameMount, type MountRequest } from '../request/mount-request.ts'
import { tryAcquireRecordLock } from '../store/locks.ts'
import { isRecordedMount, mountRecords } from '../store/mount-record.ts'
import { locateMountRecords, readTargetOrigin, writeTargetOrigin } from '../store/record-directories.ts'
import { type Session, warnOnFailure } from '../store/session.ts'
import { CallFailure } from './worker-tasks.ts'

/**
 * Mounts as FlexVolume's `mount` does, and creates the directory.
 * @throws {Refusal} with a message for the pod's author; {CallFailure} ALREADY_EXISTS if the target is published with other
 *   options; system errors
 */
export async function publish(session: Session, request: MountRequest): Promise<void> {
  let isCreated = false
  try {
    await mount(session, request, (point) => {
      isCreated = prepareTarget(session, request, point)
    })
  } catch (error) {
    if (isCreated)
      warnOnFailure(session, 'could not remove the target', () => removeCreatedTarget(session, request.directory))
    throw error
  }
}

/** The caller holds the mount's lock. @returns whether it has created the directory */
function prepareTarget(session: Session, request: MountRequest, point: MountPoint): boolean {
  const { host } = session
  const record = mountRecords.readUnlessDamaged(session, point.path)
  const stat = statPoint(host, point)
  if (stat === undefined) {
    writeTargetOrigin(session, point.path, 'made')
    // If there is a record, an interrupted call has removed the directory, and the mount creates it again.
    if (record === undefined) host.inodes.createDirectory(point.parent, point.name, DIRECTORY_MODE)
    return record === undefined
  }
  const { mounted } = resolveMountPointState(host, point, stat)
  if (!isRecordedMount(record, { mounted, boot: host.bootId() })) {
    const isFirst = record === undefined && readTargetOrigin(session, point.path) === undefined
    if (isFirst) writeTargetOrigin(session, point.path, 'found')
    return false
  }
  if (isSameMount(record.request, request)) return false
  throw new CallFailure(
    'ALREADY_EXISTS',
    `target_path ${quoted(point.path)} is published with other options: delete the pod to apply those of now`,
  )
}

/** Removes the directory of a failed mount, if it is empty. */
function removeCreatedTarget(session: Session, directory: string): void {
  const { host } = session
  using point = openMountPoint(host, directory)
  if (point === undefined) return
  using lock = tryLockTarget(session, point.path)
  // Another publication of the target uses the directory.
  if (lock === undefined || mountRecords.has(session, point.path)) return
  succeeds(() => host.inodes.removeDirectory(point.parent, point.name))
}

/** Returns an empty lock if the state directory is unusable, because no other call can publish then. */
function tryLockTarget(session: Session, path: string): Disposable | undefined {
  try {
    return tryAcquireRecordLock(session, locateMountRecords(session, path))
  } catch (error) {
    if (!(error instanceof FileError)) throw error
    return new DisposableStack()
  }
}
