import { errorCode } from '../host/host.ts'
import { DIRECTORY_MODE } from '../mount/attach.ts'
import { mount } from '../mount/mount.ts'
import { unmount } from '../mount/unmount.ts'
import { lookAt, openMountPoint, statPoint } from '../mount-table/mount-point.ts'
import { quoted, Refusal } from '../refusal/refusal.ts'
import { isSameMount, type MountRequest } from '../request/mount-request.ts'
import { isOurs, mountRecords } from '../store/mount-record.ts'
import type { Session } from '../store/session.ts'
import { CallFailure } from './jobs.ts'

/**
 * Mounts as FlexVolume's `mount` does, in a directory that it makes. One that is published with other options stays as
 * it is.
 * @throws {Refusal} with a sentence for the pod's author, {CallFailure} ALREADY_EXISTS; any other error is the system's
 */
export async function publish(session: Session, request: MountRequest): Promise<void> {
  const { host } = session
  await mount(session, request, (point) => {
    const record = mountRecords.readUnlessDamaged(session, point.path)
    const stat = statPoint(host, point)
    // With a record an interrupted call has removed it, and the mount makes what it needs.
    if (stat === undefined && record === undefined)
      host.inodes.createDirectory(point.parent, point.name, DIRECTORY_MODE)
    if (stat === undefined) return
    const { mounted } = lookAt(host, point, stat)
    if (!isOurs(record, { mounted, boot: host.bootId() }) || isSameMount(record.request, request)) return
    throw new CallFailure(
      'ALREADY_EXISTS',
      `target_path ${quoted(point.path)} is published with other options: delete the pod to apply those of now`,
    )
  })
}

/** Unmounts, and removes the directory. What is not there is a success. @throws as `publish` */
export async function unpublish(session: Session, directory: string): Promise<void> {
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
