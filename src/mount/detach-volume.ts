import { basename } from 'node:path'
import { createFault } from '../errors/fault.ts'
import { quoteValue } from '../errors/refusal.ts'
import type { Handle, MountedFileSystem } from '../kernel/host.ts'
import { isMounted, type MountPoint, statMountPointUnsynced } from '../kernel/mount-table/mount-point.ts'
import type { MountRecord } from '../state/mount-record.ts'
import type { Session } from '../state/session.ts'
import { endMountDaemon, findHangingDaemon } from '../volume/daemon.ts'
import { findVolumeKind } from '../volume/index.ts'
import { runIsolatedWork } from '../worker/isolated.ts'
import { detachAllMounts } from './attach.ts'

/** Milliseconds after which a server counts as unresponsive. A busy node needs as many to start a process. */
const SERVER_PATIENCE_MS = 5000

/**
 * Removes every mount of a volume at the point.
 * @returns whether a file system without a device, which has no other sign of use, was in use
 */
export async function detachVolume(
  session: Session,
  point: MountPoint,
  record: MountRecord | undefined,
  fileSystem: MountedFileSystem | undefined,
): Promise<boolean> {
  const { host } = session
  const hanging = await findHangingDaemon(session, point, record)
  if (record && hanging !== undefined) {
    host.mounts.detach(point.parent, point.name, true)
    endMountDaemon(session, record, hanging)
  }
  const findsUse = fileSystem?.devices.length === 0
  if (record && isServerVolume(record)) return unmountServerVolume(session, point, findsUse)
  return detachAllMounts(host, point, findsUse)
}

/** Whether the kernel tells a server about the unmount, and waits for it. */
function isServerVolume({ request }: MountRecord): boolean {
  const kind = findVolumeKind(request.fsType)
  return kind?.root === 'text' && !kind.hasDaemon
}

/** The task of the isolated process. */
interface UnmountTask {
  path: string
  findsUse: boolean
}

/**
 * Removes every mount at the point of a server's volume. The kernel removes the last mount from the tree first and tells the
 * server afterwards, which takes minutes if the network is cut. So a process of its own unmounts: it waits there alone.
 * @param findsUse as for `detachAllMounts`
 * @returns whether a mount was in use; false if the server does not respond
 */
async function unmountServerVolume(session: Session, point: MountPoint, findsUse: boolean): Promise<boolean> {
  const { host } = session
  if (!isMounted(statMountPointUnsynced(host, point))) return false
  try {
    return await runIsolatedWork<boolean>(session, {
      work: 'unmount',
      about: { path: point.path, findsUse } satisfies UnmountTask,
      handle: point.parent,
      patienceMs: SERVER_PATIENCE_MS,
      givenUp: (seconds, waiting) =>
        createFault(
          'unresponsive-call',
          `the server of the volume at ${quoteValue(point.path)} has not answered its unmount for ${seconds} s`,
          `repair the server${waiting}`,
        ),
    })
  } catch (error) {
    // The mount is gone, and the process waits for the server without it.
    if (!isMounted(statMountPointUnsynced(host, point))) {
      session.note({ unmount: (error as Error).message })
      return false
    }
    // It could not start, or has crashed before the unmount.
    return detachAllMounts(host, point, findsUse)
  }
}

export async function unmountServerVolumeInWorker(
  { host }: Session,
  parent: Handle,
  { path, findsUse }: UnmountTask,
): Promise<boolean> {
  return detachAllMounts(host, { parent, name: Buffer.from(basename(path)), path }, findsUse)
}
