import { killStaged, stagedMount } from '../filesystem/staged.ts'
import type { Daemon } from '../host/daemons.ts'
import type { Stat } from '../host/host.ts'
import type { MountRecord } from '../state/mount-record.ts'
import { askPoint, type MountPoint, statPoint } from './mount-point.ts'
import type { Session } from './session.ts'

// Longer than a network's short trouble, shorter than a person's patience.
const PATIENCE = 5000

/** The process that serves a mount; undefined where it has ended, null for a mount that needs none. */
export function daemonOf({ host, config }: Session, { staging }: MountRecord): Daemon | undefined | null {
  return staging === '' ? null : host.daemons.find(stagedMount(config.stateDir, staging))
}

/**
 * What is mounted there, 'broken' where its daemon has died. A daemon that lives is asked nothing: it may hang.
 */
export function askServed(session: Session, point: MountPoint, record: MountRecord | undefined) {
  const { host } = session
  const there = statPoint(host, point)
  if (!record || there === undefined || there === 'broken' || !isServed(record, there)) return askPoint(host, point)
  // Where there seems to be none, a program may have hidden its arguments: the kernel knows whether anybody serves.
  return daemonOf(session, record) ? there : askPoint(host, point)
}

function isServed({ staging, mountId }: MountRecord, { mountRoot, mountId: there }: Stat): boolean {
  return staging !== '' && mountRoot && String(there) === mountId
}

/**
 * Before an unmount: the kernel may have to write to the daemon what pods have changed, and would wait for ever for one
 * that hangs. Such a daemon is cut off and ended.
 * @returns whether the mount's connection must be ended first
 */
export async function isHanging(
  session: Session,
  point: MountPoint,
  record: MountRecord | undefined,
): Promise<boolean> {
  const { host } = session
  if (!record || record.staging === '') return false
  const there = statPoint(host, point)
  if (there === undefined || there === 'broken' || !isServed(record, there)) return false
  const { parent, name } = point
  if (await host.daemons.answers(`/proc/self/fd/${parent}/${Buffer.from(name)}`, PATIENCE)) return false
  session.warn('its daemon does not answer: it is ended, with what it has not written yet')
  return true
}

/** One that was stopped would stay for ever: it never hears that its mount is gone. */
export function endDaemon({ host, config }: Session, { staging }: MountRecord): void {
  killStaged(host, config.stateDir, staging)
}
