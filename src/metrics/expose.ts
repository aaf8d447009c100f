import type * as NodeFs from 'node:fs'
import { refuseOtherNamespace } from '../heal/namespace.ts'
import type { MountState } from '../heal/state.ts'
import type { Host } from '../host/host.ts'
import { status } from '../operator/actions/status.ts'
import { messageOf, quoted, Refusal } from '../refusal/refusal.ts'
import { isVolumeBusy } from '../store/locks.ts'
import { listMountRecords } from '../store/mount-record.ts'
import { listVolumes } from '../store/places.ts'
import { pluginRecord, runningPlugin } from '../store/plugin-record.ts'
import { listReservations } from '../store/reservation-record.ts'
import type { Session } from '../store/session.ts'
import { volumeRecords } from '../store/volume-record.ts'
import { count } from './counters.ts'
import { add, type Samples, textOf, zeros } from './samples.ts'

/**
 * Looks at the node as `status` does, and counts what the log says since the last time.
 * @param write gets the whole text; nobody else counts until it returns, so a later text is never older
 */
export async function expose(
  fs: typeof NodeFs,
  session: Session,
  version: string,
  write: (text: string) => void,
): Promise<void> {
  refuseOtherNamespace(session)
  const gauges = await gaugesOf(session, version)
  count(fs, session, (counters) => write(textOf(new Map([...gauges, ...counters]))))
}

/** What is so at this moment. */
async function gaugesOf(session: Session, version: string): Promise<Samples> {
  const gauges = zeros('gauges')
  add(gauges, 'modekeep_info', { version })
  const { mounts, containers, unrecorded, unreadable } = await status(session)
  for (const { fsType, ownership, state, daemon } of mounts) {
    add(gauges, 'modekeep_mounts', { type: fsType, ownership, state })
    if (daemon) add(gauges, 'modekeep_daemons', { state: daemon.state })
  }
  // Only the record has the type and the ownership.
  const state: MountState = 'unknown'
  for (const _ of [...unrecorded, ...unreadable]) {
    add(gauges, 'modekeep_mounts', { type: 'unknown', ownership: 'unknown', state })
  }
  add(gauges, 'modekeep_walks_running', {}, listReservations(session).length)
  for (const state of pendingRestores(session)) add(gauges, 'modekeep_restores_pending', { state })
  for (const { state } of containers) add(gauges, 'modekeep_container_volumes', { state })
  if (pluginRecord.has(session, undefined)) {
    add(gauges, 'modekeep_plugins', { state: runningPlugin(session)?.isRegistered ? 'asked' : 'away' })
  }
  add(gauges, 'modekeep_calls_logged', {}, ['info', 'debug'].includes(session.config.logLevel) ? 1 : 0)
  return gauges
}

/** One for each volume with a pending restore; a restore that is running is not overdue. */
function pendingRestores(session: Session): ('mounted' | 'overdue')[] {
  const records = listMountRecords(session).filter(({ ended }) => ended === undefined)
  const mounted = new Set(records.map(({ volume }) => volume))
  return listVolumes(session).flatMap((volume) => {
    if (!volumeRecords.find(session, volume).record?.restorePending) return []
    return mounted.has(volume) || isVolumeBusy(session, volume) ? 'mounted' : 'overdue'
  })
}

/**
 * Exchanges a file for one with this text. The temporary name ends in no `.prom`, by which a collector goes.
 * @throws {Refusal} naming the file, and what the system said
 */
export function writeTextfile({ files }: Host, path: string, text: string): void {
  try {
    // Everybody may read it: the collector is not root.
    files.replace(path, text, 0o644)
  } catch (error) {
    const said = messageOf((error as Error).cause ?? error)
    const told = `--output ${quoted(path)} cannot be written (${said}): name a file in a directory that is there`
    throw new Refusal(told, { cause: error })
  }
}
