import { closing, type Daemon, type Host, hasDisk, type Stat } from '../host/host.ts'
import { GUARD_OPTIONS, hasGuard } from '../mount-table/layers.ts'
import { RDONLY } from '../mount-table/mount-flags.ts'
import { isMounted, type MountPoint, queryPoint, statPoint } from '../mount-table/mount-point.ts'
import { isLocalMount, RESPONSE_TIMEOUT_MS } from '../mount-table/responsiveness.ts'
import { type MountRecord, mountRecords, processesKnown, stagingOf } from '../store/mount-record.ts'
import { orWarn, type Session } from '../store/session.ts'
import { findKind } from './index.ts'
import { formatStagedMount, killStaged } from './kind/staged.ts'

/** What a record says of daemons. */
type RecordedDaemons = Pick<MountRecord, 'daemons'>

/** The process that was started with a staging directory; undefined where it has ended. */
export function findDaemon({ host, config }: Session, record: RecordedDaemons, staging: string): Daemon | undefined {
  return host.daemons.find(formatStagedMount(config.stateDir, staging), processesKnown(record, staging))
}

/** With all that was started for it. */
export function endDaemon({ host, config }: Session, record: RecordedDaemons, staging: string): void {
  killStaged(host, config.stateDir, staging, processesKnown(record, staging))
}

/** By SIGSTOP, or by a debugger. */
export function isStopped(daemon: Daemon | undefined): boolean {
  return daemon?.state === 'T' || daemon?.state === 't'
}

/**
 * What is mounted there, 'broken' where its daemon has died or its server has lost it. A daemon that lives is asked
 * nothing, as it may hang; a server that does not respond may come back.
 * @returns with `healthUnknownReason`, why its health is unknown
 */
export async function statServed(
  session: Session,
  point: MountPoint,
  record: MountRecord | undefined,
): Promise<{ stat: Stat | 'broken' | undefined; healthUnknownReason?: string }> {
  const { host } = session
  const there = statPoint(host, point)
  if (there === undefined || there === 'broken') return { stat: there }
  const staging = record && there.mountRoot ? stagingOf(record, there.mountId) : undefined
  if (record && staging !== undefined && findDaemon(session, record, staging)) return { stat: there }
  if (there.mountRoot && (await isUnresponsive(session, point, record))) {
    // What modekeep does not know it can replace all the same.
    const isRecorded = record !== undefined && String(there.mountId) === record.mounted?.mountId
    return isRecorded
      ? { stat: there, healthUnknownReason: 'health unknown: the server does not respond' }
      : { stat: there }
  }
  // Where there seems to be none, a program may have hidden its arguments: the kernel knows whether anybody serves.
  return { stat: queryPoint(host, point, staging !== undefined) }
}

/** Whether what only a server or a daemon can tell of is asked for in vain. */
async function isUnresponsive({ host }: Session, point: MountPoint, record: MountRecord | undefined): Promise<boolean> {
  const { parent, name, path } = point
  const { mountId, device } = host.inodes.statMountPoint(parent, name)
  const isText = record !== undefined && findKind(record.request.fsType)?.root === 'text'
  if (!isText && (hasDisk(device) || isLocalMount(host, mountId, path))) return false
  return !(await host.daemons.answers(parent, name, RESPONSE_TIMEOUT_MS, `mount ${mountId}`))
}

/**
 * Before a mount goes: the kernel may have to write to its daemon what pods have changed, and would wait for ever for
 * one that hangs. One that is at work is waited for.
 * @returns the staging directory of the daemon that serves the mount, where it does not respond
 */
export async function findHangingDaemon(
  session: Session,
  point: MountPoint,
  record: MountRecord | undefined,
): Promise<string | undefined> {
  const { host, config } = session
  const there = record && statPoint(host, point)
  if (!record || there === undefined || there === 'broken' || !there.mountRoot) return undefined
  const staging = stagingOf(record, there.mountId)
  if (staging === undefined) {
    if (await isUnresponsive(session, point, record)) {
      session.warn('its server does not respond: the kernel may wait for it, with what it has not written yet')
    }
    return undefined
  }
  const stopped = isStopped(findDaemon(session, record, staging))
  const patience = stopped ? RESPONSE_TIMEOUT_MS : config.helperTimeoutSeconds * 1000
  if (await host.daemons.answers(point.parent, point.name, patience)) return undefined
  session.warn(
    stopped
      ? 'its daemon is stopped: it is ended, with what it has not written yet'
      : `its daemon has not responded for ${config.helperTimeoutSeconds} s (helperTimeoutSeconds): it is ended, with what it has not written yet`,
  )
  return staging
}

/** Ends a daemon that hangs, before another mount takes its mount's place. */
export async function endHanging(session: Session, point: MountPoint, record: MountRecord | undefined): Promise<void> {
  const staging = await findHangingDaemon(session, point, record)
  if (record && staging !== undefined) endDaemon(session, record, staging)
}

/**
 * Lays an empty read-only file system in memory beneath what a daemon serves. When the daemon's mount goes, by whatever
 * hand, a pod that is started on the directory cannot write to the node's disk: modes do not stop root, this does.
 */
export function putGuard(host: Host, point: MountPoint): void {
  const { inodes, mounts } = host
  const hasMount = isMounted(statPoint(host, point))
  if (hasMount && hasGuard(host, point.path)) return
  const guard = mounts.createTree('tmpfs', GUARD_OPTIONS)
  using _guard = closing(inodes, guard)
  const there = inodes.openEntry(point.parent, point.name)
  using _there = closing(inodes, there)
  mounts.setFlags(guard, { set: RDONLY, clear: 0 })
  // A kernel that cannot put it beneath a mount that is there leaves that mount without.
  if (hasMount) mounts.attachBeneath(guard, there)
  else mounts.attach(guard, there)
}

/** One that is stopped never hears that its mount is gone; any other may have to write. @returns those that go on */
export function endStopped(
  session: Session,
  record: Pick<MountRecord, 'staging' | 'replacedDaemons' | 'daemons'>,
): string[] {
  const { staging, replacedDaemons } = record
  return [...replacedDaemons, ...(staging === undefined ? [] : [staging])].filter((name) => {
    const daemon = findDaemon(session, record, name)
    if (isStopped(daemon)) endDaemon(session, record, name)
    return daemon !== undefined && !isStopped(daemon)
  })
}

/**
 * After a replacement: what containers have open of the old mount is still served, and its daemon ends with the last of
 * them. One that is stopped would stay.
 */
export function endReplaced(session: Session, path: string): void {
  // The mount is there, and the next call does the same.
  orWarn(session, 'daemons of what was mounted before', () => {
    const record = mountRecords.read(session, path)
    if (!record) return
    const left = endStopped(session, { ...record, staging: undefined })
    if (left.length === record.replacedDaemons.length && record.replaces === undefined) return
    // What it replaced is gone, and its id may be another mount's on kernels before 6.8.
    mountRecords.write(session, { ...record, replaces: undefined, replacedDaemons: left })
  })
}
