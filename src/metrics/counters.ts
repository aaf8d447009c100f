import type * as NodeFs from 'node:fs'
import { isEntry, type LogEntry, logEntry } from '../log/log-entry.ts'
import { endOfLog, logReader } from '../log/log-reader.ts'
import { Refusal } from '../refusal/refusal.ts'
import { tryLockNode } from '../store/locks.ts'
import { metricsRecord } from '../store/metrics-record.ts'
import type { Session } from '../store/session.ts'
import type { FamilyName } from './families.ts'
import { add, observe, type Samples, series, zeros } from './samples.ts'

/**
 * Brings the counters up to the log's last line and remembers them with that place: a line is counted once, whatever is
 * rotated or killed in between. Calls of kubelet take no part in it.
 * @param use is told the counters before anybody else may count
 * @throws {Refusal} while another process counts
 */
export function count(fs: typeof NodeFs, session: Session, use: (counters: Samples) => void): void {
  const { logFile } = session.config
  using lock = tryLockNode(session, 'metrics')
  if (lock === undefined) throw new Refusal('another "modekeep status --prometheus" is at work: run it again')
  const record = metricsRecord.readUnlessDamaged(session, undefined)
  const counters: Samples = new Map([...zeros('counters'), ...Object.entries(record?.totals ?? {})])
  // What happened before the first count is nobody's increase.
  const reader = logReader(fs, logFile, 'skip', record?.cursor ?? endOfLog(fs, logFile))
  for (const line of reader.lines()) tally(counters, line)
  add(counters, 'modekeep_log_gaps_total', {}, reader.gaps)
  metricsRecord.write(session, { cursor: reader.cursor, totals: Object.fromEntries(counters) })
  use(counters)
}

/** Adds what one line of the log tells. Nothing of a verb without series: a line of another kind or version. */
function tally(counters: Samples, line: string): void {
  const facts = logEntry(line)
  const labels = { verb: String(facts?.verb) }
  if (facts === undefined || !counters.has(series('modekeep_warnings_total', labels))) return
  if (facts.level === 'warn') add(counters, 'modekeep_warnings_total', labels, numberOf(facts.repeated) || 1)
  add(counters, 'modekeep_warnings_total', labels, numberOf(facts.repeatedWarnings))
  if (facts.outcome !== 'Success' && facts.outcome !== 'Failure') return
  const failure = facts.isRefused === true ? 'refused' : 'failed'
  add(counters, 'modekeep_calls_total', { ...labels, outcome: facts.outcome === 'Success' ? 'success' : failure })
  observe(counters, 'modekeep_call_duration_seconds', labels, numberOf(facts.durationMs) / 1000)
  if (isEntry(facts.inodes)) {
    const { visited, changed, left } = facts.inodes
    add(counters, 'modekeep_walks_total', labels)
    add(counters, 'modekeep_inodes_visited_total', labels, numberOf(visited))
    add(counters, 'modekeep_inodes_changed_total', labels, numberOf(changed))
    for (const [reason, entry] of Object.entries(isEntry(left) ? left : {})) {
      if (isEntry(entry)) add(counters, 'modekeep_inodes_left_total', { reason }, numberOf(entry.count))
    }
  }
  for (const { state, action } of listOf(facts.found)) addKnown(counters, 'modekeep_heals_total', { state, action })
  for (const { action } of listOf(facts.subPaths)) addKnown(counters, 'modekeep_sub_path_heals_total', { action })
}

/** Of the series that are there from the start: another version may have written another. */
function addKnown(counters: Samples, name: FamilyName, facts: Readonly<Record<string, unknown>>): void {
  const labels = Object.fromEntries(Object.entries(facts).map(([label, value]) => [label, String(value)]))
  if (counters.has(series(name, labels))) add(counters, name, labels)
}

function listOf(value: unknown): LogEntry[] {
  return Array.isArray(value) ? value.filter(isEntry) : []
}

/** A counter never goes down. */
function numberOf(value: unknown): number {
  return typeof value === 'number' && value >= 0 && Number.isFinite(value) ? value : 0
}
