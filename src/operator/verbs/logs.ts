import { isLogEntry, type LogEntry, parseLogEntry } from '../../log/log-entry.ts'
import type { LogsCommand } from '../actions/logs.ts'
import type { Line } from '../text/output.ts'
import type { VerbForm } from './form.ts'
import { parseDuration } from './options.ts'

export const logs: VerbForm<LogsCommand> = {
  summary: "show what kubelet's calls and these commands did",
  text: [
    "Shows the node's log, the rotated files first: time, verb, outcome, duration and pod of each call, and why it " +
      'failed.',
    'Kubelet repeats a call that fails every two minutes. Warnings that the log has of it within the last hour are not ' +
      "written again: the call's line counts them.",
  ],
  options: {
    follow: 'show new lines as they are written, through rotations; ends on Ctrl-C',
    lines: 'only the last N lines (default: all; with --follow 10)',
    since: 'only the lines that are younger than this, such as 1h, 30m, 2d or 1h30m',
    failed: 'only the calls that failed or were refused',
    pod: 'only the lines about one pod: its UID, or NAMESPACE/NAME',
    json: 'the lines as they were written, one JSON document each',
  },
  examples: [
    'modekeep logs --follow',
    'modekeep logs --pod shop/cart-0 -n 20',
    'modekeep logs --since 1h --failed -n 50',
  ],
  read({ given }) {
    const isFollowing = given.has('follow')
    // 10 as with tail(1).
    const lines = given.get('lines') ?? (isFollowing ? 10 : undefined)
    const last = lines === undefined ? undefined : Number(lines)
    const age = parseDuration(given.get('since') ?? '')
    return { verb: 'logs', isFollowing, last, pod: given.get('pod'), age, isFailed: given.has('failed') }
  },
}

/** Formats one line of the log. A line that is no JSON object is returned unchanged. */
export function formatEntryLine(raw: string): Line {
  const entry = parseLogEntry(raw)
  if (entry === undefined) return raw
  const { time, level, verb, outcome, durationMs } = entry
  const head = [
    textOrEmpty(time).padEnd(24),
    textOrEmpty(level).padEnd(5),
    textOrEmpty(verb).padEnd(8),
    textOrEmpty(outcome).padEnd(7),
    (typeof durationMs === 'number' ? `${durationMs} ms` : '').padStart(10),
  ].join(' ')
  const subject = textOrEmpty(entry.pod) || textOrEmpty(entry.source) || textOrEmpty(entry.directory)
  const line = [head, subject, listDetails(entry).join('; ')].filter((part) => part !== '').join('  ')
  if (level !== 'error' && level !== 'warn') return line
  return { text: line, style: level === 'error' ? 'fault' : 'notice' }
}

function listDetails(entry: LogEntry): string[] {
  const {
    error,
    message,
    repeated,
    repeatedWarnings,
    decision,
    reason,
    given,
    why,
    ownership,
    inodes,
    restore,
    found,
    removed,
  } = entry
  const healed = Array.isArray(found)
    ? found.map((one) => `${textOrEmpty(one.outcome)} ${textOrEmpty(one.directory)}`)
    : []
  return [
    textOrEmpty(error) || textOrEmpty(message),
    typeof repeated === 'number' ? `${repeated} times more` : '',
    typeof repeatedWarnings === 'number' ? `warnings as before: ${repeatedWarnings}` : '',
    [textOrEmpty(decision), textOrEmpty(reason)].filter(Boolean).join(': '),
    textOrEmpty(given) && `ownership ${textOrEmpty(given)}: ${textOrEmpty(why)}`,
    textOrEmpty(ownership),
    formatCounts(isLogEntry(inodes) ? inodes : entry),
    textOrEmpty(restore),
    ...healed,
    Array.isArray(removed) ? `${removed.length} removed` : '',
  ].filter((part) => part !== '')
}

function formatCounts({ visited, changed, left }: LogEntry): string {
  if (typeof visited !== 'number' || typeof changed !== 'number') return ''
  const reasons = Object.keys(isLogEntry(left) ? left : {})
  return `${visited} looked at, ${changed} changed${reasons.length > 0 ? `, left alone: ${reasons.join(', ')}` : ''}`
}

function textOrEmpty(value: unknown): string {
  return typeof value === 'string' ? value : ''
}
