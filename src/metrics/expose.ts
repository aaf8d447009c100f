import type * as NodeFs from 'node:fs'
import { readSelectedStatus } from '../cli/commands/status.ts'
import { createFault } from '../errors/fault.ts'
import { formatError, quoteValue, Refusal } from '../errors/refusal.ts'
import type { Host } from '../kernel/host.ts'
import { isLogEntry, type LogEntry, parseLogEntry } from '../log/log-entry.ts'
import { createLogReader, findLogEnd } from '../log/log-reader.ts'
import { type MountState, refuseOtherMountNamespace } from '../repair/state.ts'
import { isVolumeBusy } from '../state/lock-holders.ts'
import { tryAcquireNodeLock } from '../state/locks.ts'
import { listReadableMountRecords } from '../state/mount-record.ts'
import { findRunningPlugin, listVolumeReservations, metricsRecord, nriPluginRecord } from '../state/process-records.ts'
import { listVolumesWithRecords } from '../state/record-directories.ts'
import type { Session } from '../state/session.ts'
import { volumeRecords } from '../state/volume-record.ts'
import {
  addSample,
  createZeroSamples,
  formatMetricSamples,
  formatSeries,
  type MetricFamilyName,
  type MetricSamples,
  observeDuration,
} from './samples.ts'

/**
 * Reads the node's state as `status` does, and counts the log lines since the last call.
 * @param write gets the text; no other process counts until it returns, so a later text is never older
 * @returns the text
 */
export async function writeMetrics(
  fs: typeof NodeFs,
  session: Session,
  version: string,
  write: (text: string) => void = () => {},
): Promise<string> {
  refuseOtherMountNamespace(session)
  const gauges = await readGauges(session, version)
  let text = ''
  updateCounters(fs, session, (counters) => {
    text = formatMetricSamples(new Map([...gauges, ...counters]))
    write(text)
  })
  return text
}

/** The gauges show the present state. */
async function readGauges(session: Session, version: string): Promise<MetricSamples> {
  const gauges = createZeroSamples('gauges')
  addSample(gauges, 'modekeep_info', { version })
  const { mounts, containers, unrecorded, unreadable } = await readSelectedStatus(session)
  for (const { fsType, ownership, state, daemon } of mounts) {
    addSample(gauges, 'modekeep_mounts', { type: fsType, ownership, state })
    if (daemon) addSample(gauges, 'modekeep_daemons', { state: daemon.state })
  }
  // Only the record has the type and the ownership.
  const state: MountState = 'unknown'
  for (const _ of [...unrecorded, ...unreadable]) {
    addSample(gauges, 'modekeep_mounts', { type: 'unknown', ownership: 'unknown', state })
  }
  addSample(gauges, 'modekeep_walks_running', {}, listVolumeReservations(session).length)
  for (const state of listPendingRestores(session)) addSample(gauges, 'modekeep_restores_pending', { state })
  for (const { state } of containers) addSample(gauges, 'modekeep_container_volumes', { state })
  if (nriPluginRecord.has(session, undefined)) {
    addSample(gauges, 'modekeep_plugins', { state: findRunningPlugin(session)?.isRegistered ? 'asked' : 'away' })
  }
  addSample(gauges, 'modekeep_calls_logged', {}, ['info', 'debug'].includes(session.config.logLevel) ? 1 : 0)
  return gauges
}

/** Returns a state for each volume with a pending restore. A running restore is not overdue. */
function listPendingRestores(session: Session): ('mounted' | 'overdue')[] {
  const records = listReadableMountRecords(session).filter(({ ended }) => ended === undefined)
  const mounted = new Set(records.map(({ volume }) => volume))
  return listVolumesWithRecords(session).flatMap((volume) => {
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
    const message = `--output ${quoteValue(path)} cannot be written (${reason}): name a file in a directory that is there`
    throw new Refusal(createFault('command', message), { cause: error })
  }
}

/**
 * Updates the counters up to the log's last line, and saves them with that position. A line is counted once, also
 * across rotations and crashes. Calls of kubelet do not run this.
 * @param onUpdated gets the counters before another process may count
 * @throws {Refusal} while another process counts
 */
export function updateCounters(
  fs: typeof NodeFs,
  session: Session,
  onUpdated: (counters: MetricSamples) => void,
): void {
  const { logFile } = session.config
  using lock = tryAcquireNodeLock(session, 'metrics')
  if (lock === undefined)
    throw Refusal.of('command', 'another "modekeep status --prometheus" is at work', 'run it again')
  const record = metricsRecord.readUnlessDamaged(session, undefined)
  const counters: MetricSamples = new Map([...createZeroSamples('counters'), ...Object.entries(record?.totals ?? {})])
  // Events before the first count are no increase.
  const reader = createLogReader(fs, logFile, 'skip', record?.cursor ?? findLogEnd(fs, logFile))
  for (const line of reader.lines()) countLogLine(counters, line)
  addSample(counters, 'modekeep_log_gaps_total', {}, reader.gaps)
  metricsRecord.write(session, { cursor: reader.cursor, totals: Object.fromEntries(counters) })
  onUpdated(counters)
}

/** Counts one line of the log. A verb without series is ignored: the line is of another kind or version. */
function countLogLine(counters: MetricSamples, line: string): void {
  const facts = parseLogEntry(line)
  const labels = { verb: String(facts?.verb) }
  if (facts === undefined || !counters.has(formatSeries('modekeep_warnings_total', labels))) return
  if (facts.level === 'warn')
    addSample(counters, 'modekeep_warnings_total', labels, parseCounterValue(facts.repeated) || 1)
  addSample(counters, 'modekeep_warnings_total', labels, parseCounterValue(facts.repeatedWarnings))
  if (facts.outcome !== 'Success' && facts.outcome !== 'Failure') return
  const failure = facts.isRefused === true ? 'refused' : 'failed'
  addSample(counters, 'modekeep_calls_total', { ...labels, outcome: facts.outcome === 'Success' ? 'success' : failure })
  observeDuration(counters, 'modekeep_call_duration_seconds', labels, parseCounterValue(facts.durationMs) / 1000)
  if (isLogEntry(facts.inodes)) {
    const { visited, changed, left } = facts.inodes
    addSample(counters, 'modekeep_walks_total', labels)
    addSample(counters, 'modekeep_inodes_visited_total', labels, parseCounterValue(visited))
    addSample(counters, 'modekeep_inodes_changed_total', labels, parseCounterValue(changed))
    for (const [reason, entry] of Object.entries(isLogEntry(left) ? left : {})) {
      if (isLogEntry(entry))
        addSample(counters, 'modekeep_inodes_left_total', { reason }, parseCounterValue(entry.count))
    }
  }
  for (const { state, action } of filterLogEntries(facts.found))
    addToExistingSeries(counters, 'modekeep_heals_total', { state, action })
  for (const { action } of filterLogEntries(facts.subPaths))
    addToExistingSeries(counters, 'modekeep_sub_path_heals_total', { action })
}

/** Adds to a series that exists from the start. Another version may have logged other label values. */
function addToExistingSeries(
  counters: MetricSamples,
  name: MetricFamilyName,
  facts: Readonly<Record<string, unknown>>,
): void {
  const labels = Object.fromEntries(Object.entries(facts).map(([label, value]) => [label, String(value)]))
  if (counters.has(formatSeries(name, labels))) addSample(counters, name, labels)
}

function filterLogEntries(value: unknown): LogEntry[] {
  return Array.isArray(value) ? value.filter(isLogEntry) : []
}

/** A counter never decreases. */
function parseCounterValue(value: unknown): number {
  return typeof value === 'number' && value >= 0 && Number.isFinite(value) ? value : 0
}
