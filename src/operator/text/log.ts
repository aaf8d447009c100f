import { isEntry, type LogEntry, logEntry } from '../../log/log-entry.ts'
import type { Line } from './line.ts'

/** One line of the log for people; what is no JSON object is shown as it is. */
export function logLine(raw: string): Line {
  const entry = logEntry(raw)
  if (entry === undefined) return { text: raw }
  const { time, level, verb, outcome, durationMs } = entry
  const took = typeof durationMs === 'number' ? `${durationMs} ms` : ''
  const head = [
    text(time).padEnd(24),
    text(level).padEnd(5),
    text(verb).padEnd(8),
    text(outcome).padEnd(7),
    took.padStart(10),
  ].join(' ')
  const subject = text(entry.pod) || text(entry.source) || text(entry.directory)
  const line = [head, subject, details(entry).join('; ')].filter((part) => part !== '').join('  ')
  const style = level === 'error' ? 'fault' : level === 'warn' ? 'notice' : undefined
  return { text: line, ...(style && { style }) }
}

function details(entry: LogEntry): string[] {
  const { error, message, decision, reason, given, why, ownership, inodes, restore, found, removed } = entry
  const healed = Array.isArray(found) ? found.map((one) => `${text(one.outcome)} ${text(one.directory)}`) : []
  return [
    text(error) || text(message),
    [text(decision), text(reason)].filter(Boolean).join(': '),
    text(given) && `ownership ${text(given)}: ${text(why)}`,
    text(ownership),
    counts(isEntry(inodes) ? inodes : entry),
    text(restore),
    ...healed,
    Array.isArray(removed) ? `${removed.length} removed` : '',
  ].filter((part) => part !== '')
}

function counts({ visited, changed, left }: LogEntry): string {
  if (typeof visited !== 'number' || typeof changed !== 'number') return ''
  const reasons = Object.keys(isEntry(left) ? left : {})
  return `${visited} looked at, ${changed} changed${reasons.length > 0 ? `, left alone: ${reasons.join(', ')}` : ''}`
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : ''
}
