import { succeeds } from '../host/file-error.ts'
import { errorCode } from '../host/host.ts'
import { DIRECTORY_MODE } from '../mount/attach.ts'
import { mount } from '../mount/mount.ts'
import { unmount } from '../mount/unmount.ts'
import { lookAt, type MountPoint, openMountPoint, statPoint } from '../mount-table/mount-point.ts'
import { quoted, Refusal } from '../refusal/refusal.ts'
import { isSameMount, type MountRequest } from '../request/mount-request.ts'
import { endAbandonedAt } from '../store/locks.ts'
import { isOurs, mountRecords } from '../store/mount-record.ts'
import { mountPlace } from '../store/places.ts'
import type { Session } from '../store/session.ts'
import { CallFailure, WORKER } from './jobs.ts'

/**
 * Mounts as FlexVolume's `mount` does, in a directory that it makes. One that is published with other options stays as
 * it is.
 * @throws {Refusal} with a sentence for the pod's author, {CallFailure} ALREADY_EXISTS; any other error is the system's
 */
export async function publish(session: Session, request: MountRequest): Promise<void> {
  let isMade = false
  try {
    await mount(session, request, (point) => {
      isMade = makeReady(session, request, point)
    })
  } catch (error) {
    if (isMade) removeMade(session, request.directory)
    throw error
  }
}

/** Call it under the mount's lock. @returns whether it has made the directory */
function makeReady(session: Session, request: MountRequest, point: MountPoint): boolean {
  const { host } = session
  const record = mountRecords.readUnlessDamaged(session, point.path)
  const stat = statPoint(host, point)
  if (stat === undefined) {
    // With a record an interrupted call has removed it, and the mount makes what it needs.
    if (record === undefined) host.inodes.createDirectory(point.parent, point.name, DIRECTORY_MODE)
    return record === undefined
  }
  const { mounted } = lookAt(host, point, stat)
  if (!isOurs(record, { mounted, boot: host.bootId() }) || isSameMount(record.request, request)) return false
  throw new CallFailure(
    'ALREADY_EXISTS',
    `target_path ${quoted(point.path)} is published with other options: delete the pod to apply those of now`,
  )
}

function endPublication(session: Session, directory: string): void {
  using point = openMountPoint(session.host, directory)
  const pid = endAbandonedAt(session, mountPlace(session, point?.path ?? directory), WORKER)
  if (pid !== undefined) session.note({ ended: pid })
}

/** As it was before a mount that failed. What else has come there stays. */
function removeMade({ host }: Session, directory: string): void {
  using point = openMountPoint(host, directory)
  if (point !== undefined) succeeds(() => host.inodes.removeDirectory(point.parent, point.name))
}

/**
 * Unmounts, and removes the directory. What is not there is a success. A publication that a worker of an ended server is
 * still at is given up: a pod that goes waits for no walk.
 * @throws as `publish`
 */
export async function unpublish(session: Session, directory: string): Promise<void> {
  endPublication(session, directory)
  await unmount(session, directory)
  using point = openMountPoint(session.host, directory)
  if (point === undefined) return
  try {
    session.host.inodes.removeDirectory(point.parent, point.name)
  } catch (error) {
    const code = errorCode(error)
    if (code === 'ENOENT') return
    if (code !== 'ENOTEMPTY' && code !== 'ENOTDIR') throw error
    throw new Refusal(
      `target_path ${quoted(point.path)} is unmounted, but is no empty directory: look at what is there, and remove it`,
    )
  }
}
