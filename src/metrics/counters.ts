import type * as NodeFs from 'node:fs'
import { Refusal } from '../errors/refusal.ts'
import { isLogEntry, type LogEntry, parseLogEntry } from '../log/log-entry.ts'
import { createLogReader, findLogEnd } from '../log/log-reader.ts'
import { tryLockNode } from '../store/locks.ts'
import { metricsRecord } from '../store/server-records.ts'
import type { Session } from '../store/session.ts'
import {
  addSample,
  createZeroSamples,
  type FamilyName,
  formatSeries,
  observeDuration,
  type Samples,
} from './samples.ts'

/**
 * Updates the counters up to the log's last line, and saves them with that position. A line is counted once, whatever
 * is rotated or killed meanwhile. Calls of kubelet do not run this.
 * @param onUpdated gets the counters before another process may count
 * @throws {Refusal} while another process counts
 */
export function updateCounters(fs: typeof NodeFs, session: Session, onUpdated: (counters: Samples) => void): void {
  const { logFile } = session.config
  using lock = tryLockNode(session, 'metrics')
  if (lock === undefined)
    throw Refusal.of('command', 'another "modekeep status --prometheus" is at work', 'run it again')
  const record = metricsRecord.readUnlessDamaged(session, undefined)
  const counters: Samples = new Map([...createZeroSamples('counters'), ...Object.entries(record?.totals ?? {})])
  // Events before the first count are no increase.
  const reader = createLogReader(fs, logFile, 'skip', record?.cursor ?? findLogEnd(fs, logFile))
  for (const line of reader.lines()) countLine(counters, line)
  addSample(counters, 'modekeep_log_gaps_total', {}, reader.gaps)
  metricsRecord.write(session, { cursor: reader.cursor, totals: Object.fromEntries(counters) })
  onUpdated(counters)
}

/** Counts one line of the log. A verb without series is ignored: the line is of another kind or version. */
function countLine(counters: Samples, line: string): void {
  const facts = parseLogEntry(line)
  const labels = { verb: String(facts?.verb) }
  if (facts === undefined || !counters.has(formatSeries('modekeep_warnings_total', labels))) return
  if (facts.level === 'warn') addSample(counters, 'modekeep_warnings_total', labels, readCount(facts.repeated) || 1)
  addSample(counters, 'modekeep_warnings_total', labels, readCount(facts.repeatedWarnings))
  if (facts.outcome !== 'Success' && facts.outcome !== 'Failure') return
  const failure = facts.isRefused === true ? 'refused' : 'failed'
  addSample(counters, 'modekeep_calls_total', { ...labels, outcome: facts.outcome === 'Success' ? 'success' : failure })
  observeDuration(counters, 'modekeep_call_duration_seconds', labels, readCount(facts.durationMs) / 1000)
  if (isLogEntry(facts.inodes)) {
    const { visited, changed, left } = facts.inodes
    addSample(counters, 'modekeep_walks_total', labels)
    addSample(counters, 'modekeep_inodes_visited_total', labels, readCount(visited))
    addSample(counters, 'modekeep_inodes_changed_total', labels, readCount(changed))
    for (const [reason, entry] of Object.entries(isLogEntry(left) ? left : {})) {
      if (isLogEntry(entry)) addSample(counters, 'modekeep_inodes_left_total', { reason }, readCount(entry.count))
    }
  }
  for (const { state, action } of readEntries(facts.found))
    addIfExisting(counters, 'modekeep_heals_total', { state, action })
  for (const { action } of readEntries(facts.subPaths))
    addIfExisting(counters, 'modekeep_sub_path_heals_total', { action })
}

/** Adds to a series that exists from the start. Another version may have logged other label values. */
function addIfExisting(counters: Samples, name: FamilyName, facts: Readonly<Record<string, unknown>>): void {
  const labels = Object.fromEntries(Object.entries(facts).map(([label, value]) => [label, String(value)]))
  if (counters.has(formatSeries(name, labels))) addSample(counters, name, labels)
}

function readEntries(value: unknown): LogEntry[] {
  return Array.isArray(value) ? value.filter(isLogEntry) : []
}

/** A counter never decreases. */
function readCount(value: unknown): number {
  return typeof value === 'number' && value >= 0 && Number.isFinite(value) ? value : 0
}
