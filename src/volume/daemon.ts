import { type Daemon, deferHandleClose, type Host, isDiskDevice, type Stat } from '../kernel/host.ts'
import { MOUNT_ATTR_RDONLY } from '../kernel/mount-table/mount-flags.ts'
import {
  isMounted,
  type MountPoint,
  queryMountPoint,
  statMountPointUnsynced,
} from '../kernel/mount-table/mount-point.ts'
import { GUARD_MOUNT_OPTIONS, hasGuardMount } from '../kernel/mount-table/mountinfo.ts'
import { isLocalMount, RESPONSE_TIMEOUT_MS } from '../kernel/mount-table/responsiveness.ts'
import {
  findDaemonProcesses,
  findDaemonStagingDirectory,
  type MountRecord,
  mountRecords,
} from '../state/mount-record.ts'
import { type Session, warnOnFailure } from '../state/session.ts'
import { findVolumeKind } from './index.ts'
import { formatStagedMountPath, killStagedProcesses } from './kind/staged.ts'

type RecordedDaemons = Pick<MountRecord, 'daemons'>

/** Finds the process that was started with a staging directory; undefined if it has ended. */
export function findMountDaemon(
  { host, config }: Session,
  record: RecordedDaemons,
  staging: string,
): Daemon | undefined {
  return host.daemons.find(formatStagedMountPath(config.stateDir, staging), findDaemonProcesses(record, staging))
}

/** Ends the daemon and all processes that were started for its staging directory. */
export function endMountDaemon({ host, config }: Session, record: RecordedDaemons, staging: string): void {
  killStagedProcesses(host, config.stateDir, staging, findDaemonProcesses(record, staging))
}

/** Whether SIGSTOP or a debugger stopped the daemon. */
export function isDaemonStopped(daemon: Daemon | undefined): boolean {
  return daemon?.state === 'T' || daemon?.state === 't'
}

/**
 * Stats the mount at a point: 'broken' if its daemon crashed or its server no longer has it. No request goes to a running
 * daemon, which may hang. An unresponsive server may recover.
 * @returns the stat, and the reason if the mount's health is unknown
 */
export async function statServedMount(
  session: Session,
  point: MountPoint,
  record: MountRecord | undefined,
): Promise<{ stat: Stat | 'broken' | undefined; healthUnknownReason?: string }> {
  const { host } = session
  const there = statMountPointUnsynced(host, point)
  if (there === undefined || there === 'broken') return { stat: there }
  const staging = record && there.mountRoot ? findDaemonStagingDirectory(record, there.mountId) : undefined
  if (record && staging !== undefined && findMountDaemon(session, record, staging)) return { stat: there }
  if (there.mountRoot && (await isMountUnresponsive(session, point, record))) {
    // A mount that is not recorded can be replaced even if it does not respond.
    const isRecorded = record !== undefined && String(there.mountId) === record.mounted?.mountId
    return isRecorded
      ? { stat: there, healthUnknownReason: 'health unknown: the server does not respond' }
      : { stat: there }
  }
  // A daemon that is not found may have hidden its arguments: the kernel knows whether a process serves the mount.
  return { stat: queryMountPoint(host, point, staging !== undefined) }
}

async function isMountUnresponsive(
  { host }: Session,
  point: MountPoint,
  record: MountRecord | undefined,
): Promise<boolean> {
  const { parent, name, path } = point
  const { mountId, device } = host.inodes.statMountPoint(parent, name)
  const isText = record !== undefined && findVolumeKind(record.request.fsType)?.root === 'text'
  if (!isText && (isDiskDevice(device) || isLocalMount(host, mountId, path))) return false
  return !(await host.daemons.answers(parent, name, RESPONSE_TIMEOUT_MS, `mount ${mountId}`))
}

/**
 * Checks a mount's daemon before the unmount: the kernel may have to write the pods' changes to it, and would wait
 * indefinitely if it hangs. A daemon that is busy gets time to respond.
 * @returns the staging directory of the mount's daemon if it does not respond
 */
export async function findHangingDaemon(
  session: Session,
  point: MountPoint,
  record: MountRecord | undefined,
): Promise<string | undefined> {
  const { host, config } = session
  const there = record && statMountPointUnsynced(host, point)
  if (!record || there === undefined || there === 'broken' || !there.mountRoot) return undefined
  const staging = findDaemonStagingDirectory(record, there.mountId)
  if (staging === undefined) {
    if (await isMountUnresponsive(session, point, record)) {
      session.warn(
        'its server does not respond: the kernel may wait for it, with what it has not written yet',
        'unmount-forced',
      )
    }
    return undefined
  }
  const stopped = isDaemonStopped(findMountDaemon(session, record, staging))
  const patience = stopped ? RESPONSE_TIMEOUT_MS : config.helperTimeoutSeconds * 1000
  if (await host.daemons.answers(point.parent, point.name, patience)) return undefined
  session.warn(
    stopped
      ? 'its daemon is stopped: it is ended, with what it has not written yet'
      : `its daemon has not responded for ${config.helperTimeoutSeconds} s (helperTimeoutSeconds): it is ended, with what it has not written yet`,
    'unmount-forced',
  )
  return staging
}

/** Ends a daemon that hangs, before its mount is replaced. */
export async function endHangingDaemon(
  session: Session,
  point: MountPoint,
  record: MountRecord | undefined,
): Promise<void> {
  const staging = await findHangingDaemon(session, point, record)
  if (record && staging !== undefined) endMountDaemon(session, record, staging)
}

/**
 * Attaches an empty read-only tmpfs beneath a daemon's mount. After that mount is removed, by any process, a pod that starts
 * on the directory cannot write to the node's disk. Modes would not stop root.
 */
export function attachGuardMount(host: Host, point: MountPoint): void {
  const { inodes, mounts } = host
  const hasMount = isMounted(statMountPointUnsynced(host, point))
  if (hasMount && hasGuardMount(host, point.path)) return
  const guard = mounts.createTree('tmpfs', GUARD_MOUNT_OPTIONS)
  using _guard = deferHandleClose(inodes, guard)
  const there = inodes.openEntry(point.parent, point.name)
  using _there = deferHandleClose(inodes, there)
  mounts.setFlags(guard, { set: MOUNT_ATTR_RDONLY, clear: 0 })
  // A kernel that cannot attach beneath an existing mount leaves that mount without a guard.
  if (hasMount) mounts.attachBeneath(guard, there)
  else mounts.attach(guard, there)
}

/**
 * Ends stopped daemons, which never notice that their mount is gone. Any other daemon may have data to write.
 * @returns the staging directories of daemons that continue
 */
export function endStoppedDaemons(
  session: Session,
  record: Pick<MountRecord, 'staging' | 'replacedDaemons' | 'daemons'>,
): string[] {
  const { staging, replacedDaemons } = record
  return [...replacedDaemons, ...(staging === undefined ? [] : [staging])].filter((name) => {
    const daemon = findMountDaemon(session, record, name)
    if (isDaemonStopped(daemon)) endMountDaemon(session, record, name)
    return daemon !== undefined && !isDaemonStopped(daemon)
  })
}

/**
 * Ends the stopped daemons of replaced mounts, which would never end. Any other daemon serves the files that containers
 * have open in the old mount, and ends with the last of them.
 */
export function endReplacedDaemons(session: Session, path: string): void {
  // A failure is only logged: the mount is attached, and the next call retries.
  warnOnFailure(session, 'daemons of what was mounted before', () => {
    const record = mountRecords.read(session, path)
    if (!record) return
    const left = endStoppedDaemons(session, { ...record, staging: undefined })
    if (left.length === record.replacedDaemons.length && record.replaces === undefined) return
    // The replaced mount is gone, and kernels before 6.8 may reuse its id for another mount.
    mountRecords.write(session, { ...record, replaces: undefined, replacedDaemons: left })
  })
}
