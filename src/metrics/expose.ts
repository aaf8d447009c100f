import type * as NodeFs from 'node:fs'
import { status } from '../cli/commands/status.ts'
import { createFault } from '../errors/fault.ts'
import { formatError, quoted, Refusal } from '../errors/refusal.ts'
import { refuseOtherNamespace } from '../heal/namespace.ts'
import type { MountState } from '../heal/state.ts'
import type { Host } from '../host/host.ts'
import { isVolumeBusy } from '../store/lock-holders.ts'
import { listMountRecords } from '../store/mount-record.ts'
import { listVolumes } from '../store/record-directories.ts'
import { listReservations } from '../store/reservation-record.ts'
import { findRunningPlugin, pluginRecord } from '../store/server-records.ts'
import type { Session } from '../store/session.ts'
import { volumeRecords } from '../store/volume-record.ts'
import { updateCounters } from './counters.ts'
import { addSample, createZeroSamples, formatSamples, type Samples } from './samples.ts'

/**
 * Reads the node's state as `status` does, and counts the log lines since the last call.
 * @param write gets the full text; no other process counts until it returns, so a later text is never older
 */
export async function writeMetrics(
  fs: typeof NodeFs,
  session: Session,
  version: string,
  write: (text: string) => void,
): Promise<void> {
  refuseOtherNamespace(session)
  const gauges = await readGauges(session, version)
  updateCounters(fs, session, (counters) => write(formatSamples(new Map([...gauges, ...counters]))))
}

/** The gauges show the present state. */
async function readGauges(session: Session, version: string): Promise<Samples> {
  const gauges = createZeroSamples('gauges')
  addSample(gauges, 'modekeep_info', { version })
  const { mounts, containers, unrecorded, unreadable } = await status(session)
  for (const { fsType, ownership, state, daemon } of mounts) {
    addSample(gauges, 'modekeep_mounts', { type: fsType, ownership, state })
    if (daemon) addSample(gauges, 'modekeep_daemons', { state: daemon.state })
  }
  // Only the record has the type and the ownership.
  const state: MountState = 'unknown'
  for (const _ of [...unrecorded, ...unreadable]) {
    addSample(gauges, 'modekeep_mounts', { type: 'unknown', ownership: 'unknown', state })
  }
  addSample(gauges, 'modekeep_walks_running', {}, listReservations(session).length)
  for (const state of listPendingRestores(session)) addSample(gauges, 'modekeep_restores_pending', { state })
  for (const { state } of containers) addSample(gauges, 'modekeep_container_volumes', { state })
  if (pluginRecord.has(session, undefined)) {
    addSample(gauges, 'modekeep_plugins', { state: findRunningPlugin(session)?.isRegistered ? 'asked' : 'away' })
  }
  addSample(gauges, 'modekeep_calls_logged', {}, ['info', 'debug'].includes(session.config.logLevel) ? 1 : 0)
  return gauges
}

/** Returns a state for each volume with a pending restore. A running restore is not overdue. */
function listPendingRestores(session: Session): ('mounted' | 'overdue')[] {
  const records = listMountRecords(session).filter(({ ended }) => ended === undefined)
  const mounted = new Set(records.map(({ volume }) => volume))
  return listVolumes(session).flatMap((volume) => {
    if (!volumeRecords.find(session, volume).record?.restorePending) return []
    return mounted.has(volume) || isVolumeBusy(session, volume) ? 'mounted' : 'overdue'
  })
}

/**
 * Replaces a file atomically. The temporary name does not end in `.prom`, so collectors ignore it.
 * @throws {Refusal} that names the file and the system's error
 */
export function writeTextfile({ files }: Host, path: string, text: string): void {
  try {
    // World-readable, because the collector does not run as root.
    files.replace(path, text, 0o644)
  } catch (error) {
    const reason = formatError((error as Error).cause ?? error)
    const message = `--output ${quoted(path)} cannot be written (${reason}): name a file in a directory that is there`
    throw new Refusal(createFault('command', message), { cause: error })
  }
}
