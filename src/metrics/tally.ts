import { isEntry, type LogEntry, logEntry } from '../log/log-entry.ts'
import { FAMILIES } from './families.ts'
import { add, observe, type Samples } from './samples.ts'

const { verb: VERBS } = FAMILIES.modekeep_calls_total.labels
const FOUND = FAMILIES.modekeep_heals_total.labels
const SUB_PATHS = FAMILIES.modekeep_sub_path_heals_total.labels

/** Adds what one line of the log tells to the counters. A line of another kind, or of another version, adds nothing. */
export function tally(samples: Samples, line: string): void {
  const facts = logEntry(line)
  const verb = (VERBS as readonly unknown[]).includes(facts?.verb) ? String(facts?.verb) : undefined
  if (facts === undefined || verb === undefined) return
  if (facts.level === 'warn') add(samples, 'modekeep_warnings_total', { verb })
  if (facts.outcome !== 'Success' && facts.outcome !== 'Failure') return
  add(samples, 'modekeep_calls_total', { verb, outcome: outcomeOf(facts) })
  observe(samples, 'modekeep_call_duration_seconds', { verb }, numberOf(facts.durationMs) / 1000)
  if (isEntry(facts.inodes)) tallyWalk(samples, verb, facts.inodes)
  tallyHeals(samples, facts)
}

function outcomeOf({ outcome, isRefused }: LogEntry): string {
  if (outcome === 'Success') return 'success'
  return isRefused === true ? 'refused' : 'failed'
}

function tallyWalk(samples: Samples, verb: string, { visited, changed, left }: LogEntry): void {
  add(samples, 'modekeep_walks_total', { verb })
  add(samples, 'modekeep_inodes_visited_total', { verb }, numberOf(visited))
  add(samples, 'modekeep_inodes_changed_total', { verb }, numberOf(changed))
  for (const [reason, entry] of Object.entries(isEntry(left) ? left : {})) {
    if (isEntry(entry)) add(samples, 'modekeep_inodes_left_total', { reason }, numberOf(entry.count))
  }
}

function tallyHeals(samples: Samples, { found, subPaths }: LogEntry): void {
  for (const { state, action } of listOf(found)) {
    if (isOneOf(FOUND.state, state) && isOneOf(FOUND.action, action))
      add(samples, 'modekeep_heals_total', { state, action })
  }
  for (const { action } of listOf(subPaths)) {
    if (isOneOf(SUB_PATHS.action, action)) add(samples, 'modekeep_sub_path_heals_total', { action })
  }
}

/** Another version may have written another. */
function isOneOf(values: readonly string[], value: unknown): value is string {
  return (values as readonly unknown[]).includes(value)
}

function listOf(value: unknown): LogEntry[] {
  return Array.isArray(value) ? value.filter(isEntry) : []
}

/** A counter never goes down. */
function numberOf(value: unknown): number {
  return typeof value === 'number' && value >= 0 && Number.isFinite(value) ? value : 0
}
