import { FAMILIES } from './families.ts'
import { add, observe, type Samples } from './samples.ts'

const { verb: VERBS } = FAMILIES.modekeep_calls_total.labels

/** Adds what one line of the log tells to the counters. A line of another kind, or of another version, adds nothing. */
export function tally(samples: Samples, line: string): void {
  const facts = factsOf(line)
  const verb = (VERBS as readonly unknown[]).includes(facts?.verb) ? String(facts?.verb) : undefined
  if (facts === undefined || verb === undefined) return
  if (facts.level === 'warn') add(samples, 'modekeep_warnings_total', { verb })
  if (facts.outcome !== 'Success' && facts.outcome !== 'Failure') return
  add(samples, 'modekeep_calls_total', { verb, outcome: outcomeOf(facts) })
  observe(samples, 'modekeep_call_duration_seconds', { verb }, numberOf(facts.durationMs) / 1000)
  if (isObject(facts.inodes)) tallyWalk(samples, verb, facts.inodes)
  tallyHeals(samples, facts)
}

type Facts = Readonly<Record<string, unknown>>

function factsOf(line: string): Facts | undefined {
  try {
    const value: unknown = JSON.parse(line)
    return isObject(value) ? value : undefined
  } catch {
    return undefined
  }
}

function outcomeOf({ outcome, isRefused }: Facts): string {
  if (outcome === 'Success') return 'success'
  return isRefused === true ? 'refused' : 'failed'
}

function tallyWalk(samples: Samples, verb: string, { visited, changed, left }: Facts): void {
  add(samples, 'modekeep_walks_total', { verb })
  add(samples, 'modekeep_inodes_visited_total', { verb }, numberOf(visited))
  add(samples, 'modekeep_inodes_changed_total', { verb }, numberOf(changed))
  for (const [reason, entry] of Object.entries(isObject(left) ? left : {})) {
    if (isObject(entry)) add(samples, 'modekeep_inodes_left_total', { reason }, numberOf(entry.count))
  }
}

function tallyHeals(samples: Samples, { found, subPaths }: Facts): void {
  for (const one of listOf(found)) add(samples, 'modekeep_heals_total', { outcome: String(one.outcome) })
  for (const one of listOf(subPaths)) add(samples, 'modekeep_sub_path_heals_total', { action: String(one.action) })
}

function listOf(value: unknown): Facts[] {
  return Array.isArray(value) ? value.filter(isObject) : []
}

function isObject(value: unknown): value is Facts {
  return typeof value === 'object' && value !== null
}

/** A counter never goes down. */
function numberOf(value: unknown): number {
  return typeof value === 'number' && value >= 0 && Number.isFinite(value) ? value : 0
}
