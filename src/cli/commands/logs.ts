import type * as NodeFs from 'node:fs'
import { setTimeout } from 'node:timers/promises'
import { formatError, Refusal } from '../../errors/refusal.ts'
import { openFileToRead } from '../../kernel/read-file.ts'
import { isPathRefusal } from '../../kernel/system-error.ts'
import { isLogEntry, type LogEntry, parseLogEntry } from '../../log/log-entry.ts'
import { listLogFiles } from '../../log/log-file.ts'
import { createLogReader } from '../../log/log-reader.ts'
import type { OutputLine } from '../output/output.ts'
import { parseDuration } from './options.ts'
import type { VerbForm } from './verb.ts'

export const logsVerb: VerbForm<LogsCommand> = {
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
export function formatLogEntry(raw: string): OutputLine {
  const entry = parseLogEntry(raw)
  if (entry === undefined) return raw
  const { time, level, verb, outcome, durationMs } = entry
  const head = [
    getTextOrEmpty(time).padEnd(24),
    getTextOrEmpty(level).padEnd(5),
    getTextOrEmpty(verb).padEnd(8),
    getTextOrEmpty(outcome).padEnd(7),
    (typeof durationMs === 'number' ? `${durationMs} ms` : '').padStart(10),
  ].join(' ')
  const subject = getTextOrEmpty(entry.pod) || getTextOrEmpty(entry.source) || getTextOrEmpty(entry.directory)
  const line = [head, subject, listLogEntryDetails(entry).join('; ')].filter((part) => part !== '').join('  ')
  if (level !== 'error' && level !== 'warn') return line
  return { text: line, style: level === 'error' ? 'fault' : 'notice' }
}

function listLogEntryDetails(entry: LogEntry): string[] {
  const text = (key: string) => getTextOrEmpty(entry[key])
  const { repeated, repeatedWarnings, inodes, found, removed } = entry
  const healed = Array.isArray(found)
    ? found.map((one) => `${getTextOrEmpty(one.outcome)} ${getTextOrEmpty(one.directory)}`)
    : []
  return [
    `${text('error') || text('message')}${formatFaultCodes(entry)}`,
    typeof repeated === 'number' ? `${repeated} times more` : '',
    typeof repeatedWarnings === 'number' ? `warnings as before: ${repeatedWarnings}` : '',
    [text('decision'), text('reason')].filter(Boolean).join(': '),
    text('given') && `ownership ${text('given')}: ${text('why')}`,
    text('ownership'),
    formatInodeCounts(isLogEntry(inodes) ? inodes : entry),
    text('restore'),
    ...healed,
    Array.isArray(removed) ? `${removed.length} removed` : '',
  ].filter((part) => part !== '')
}

/** A warning has one code, and a refused call a list. Lines of earlier versions have none. */
function formatFaultCodes({ code, codes }: LogEntry): string {
  const all = Array.isArray(codes) ? codes.map(getTextOrEmpty) : [getTextOrEmpty(code)]
  return all.join('') === '' ? '' : ` [${all.join(', ')}]`
}

function formatInodeCounts({ visited, changed, left }: LogEntry): string {
  if (typeof visited !== 'number' || typeof changed !== 'number') return ''
  const reasons = Object.keys(isLogEntry(left) ? left : {})
  return `${visited} looked at, ${changed} changed${reasons.length > 0 ? `, left alone: ${reasons.join(', ')}` : ''}`
}

function getTextOrEmpty(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

/** @property last number of lines; undefined: all @property age of the oldest line in milliseconds; undefined: any */
export interface LogsCommand {
  verb: 'logs'
  isFollowing: boolean
  last: number | undefined
  pod: string | undefined
  age?: number | undefined
  /** Only calls that failed. */
  isFailed?: boolean
}

const LOG_POLL_INTERVAL_MS = 250

/**
 * Reads the node's log. With `isFollowing` it continues until the process ends or its reader closes the stream.
 * @param show receives each line as it was written; returns false if the reader has closed the stream
 * @throws {Refusal} if there is no log and `isFollowing` is false
 */
export async function readNodeLog(
  fs: typeof NodeFs,
  { isFollowing, last, pod, age, isFailed }: LogsCommand,
  file: string,
  show: (raw: string) => boolean,
): Promise<void> {
  if (!isFollowing && !listLogFiles(file).some((name) => fs.existsSync(name))) {
    throw Refusal.of('command', `there is no log ${file} yet`, undefined, 'kubelet has made no call that is logged')
  }
  assertOwnLogFile(fs, file)
  const isAbout = createPodLogFilter(pod)
  const reader = createLogReader(fs, file, 'show')
  const isYoung = createLogAgeFilter(age)
  // The pod filter comes first, because it learns the pod's directory from each line.
  const isWanted = (raw: string) => isAbout(raw) && isYoung(raw) && (!isFailed || isFailedCallLine(raw))
  const readNewLines = () => reader.lines().filter(isWanted)
  let isRead = takeLastLines(readNewLines(), last).every(show)
  while (isRead && isFollowing) {
    await setTimeout(LOG_POLL_INTERVAL_MS)
    isRead = readNewLines().every(show)
  }
}

/** @throws {Refusal} if the log's path is a link or not a regular file, which modekeep neither reads nor writes */
function assertOwnLogFile(fs: typeof NodeFs, file: string): void {
  try {
    openFileToRead(fs, file)[Symbol.dispose]()
  } catch (error) {
    if (!isPathRefusal(error)) return
    throw Refusal.of(
      'command',
      `${formatError(error)}: this is not modekeep's log`,
      `make it a regular file of root's, or remove it`,
    )
  }
}

/** Returns the last lines, and buffers only somewhat more than those. */
function takeLastLines(lines: IteratorObject<string>, last: number | undefined): Pick<IteratorObject<string>, 'every'> {
  if (last === undefined) return lines
  const buffer: string[] = []
  for (const line of lines) {
    buffer.push(line)
    if (buffer.length > 2 * last + 1000) buffer.splice(0, buffer.length - last)
  }
  return last === 0 ? [].values() : buffer.slice(-last).values()
}

/** Accepts lines with a time that is not older than `age`. */
function createLogAgeFilter(age: number | undefined): (raw: string) => boolean {
  if (age === undefined) return () => true
  const from = Date.now() - age
  return (raw) => Date.parse(String(parseLogEntry(raw)?.time)) >= from
}

/** True for the last line of a call that failed or was refused. */
function isFailedCallLine(raw: string): boolean {
  return parseLogEntry(raw)?.outcome === 'Failure'
}

/** Accepts lines about one pod, given as UID or NAMESPACE/NAME. The UID is in its paths, and lines with both reveal it. */
export function createPodLogFilter(pod: string | undefined): (raw: string) => boolean {
  if (pod === undefined) return () => true
  if (!pod.includes('/')) return (raw) => raw.includes(`/pods/${pod}/`)
  const podDirectories = new Set<string>()
  return (raw) => {
    if (raw.includes(JSON.stringify(pod))) {
      const entry = parseLogEntry(raw)
      const podDirectory = entry?.pod === pod ? /^.*\/pods\/[^/]+\//.exec(String(entry.directory))?.[0] : undefined
      if (podDirectory) podDirectories.add(podDirectory)
      return true
    }
    return [...podDirectories].some((path) => raw.includes(path))
  }
}
