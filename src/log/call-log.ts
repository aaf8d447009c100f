import type { FaultCode } from '../errors/entries/index.ts'
import { escapeJson } from '../errors/escape.ts'
import { Refusal } from '../errors/refusal.ts'

export const LOG_LEVELS = ['error', 'warn', 'info', 'debug'] as const

/** Writes an event of a long-running process. Must not throw. */
export type LogEvent = (level: LogLevel, event: string, facts?: Record<string, unknown>) => void

export type LogLevel = (typeof LOG_LEVELS)[number]

export type CallLog = ReturnType<typeof createCallLog>

/** The last warning that was written, and how often it was repeated by the same call or by several calls in a row. */
export interface LastWarning {
  message?: string
  repeated: number
  /** The number of repetitions that lines of the log have reported so far. */
  reported: number
}

/** Reports 10, 100, 1,000, … equal warnings by a line, because a watch may never write a different warning. */
const isRepetitionReported = (repeated: number) => repeated >= 10 && /^10*$/.test(String(repeated))

/**
 * Collects the facts of one call and writes them as one JSON line when the call ends. A warning is a separate line. Equal
 * warnings in a row are one line, and one more line with the number of repetitions (`repeated`).
 * @param append writes one line, which has no newline; must not throw
 * @param last the last warning of the previous calls, if the log shows several calls as one
 * @param isDuplicate whether an earlier call has written the same warning. If this call fails, its line counts such warnings
 *   (`repeatedWarnings`) and they are not written again
 */
export function createCallLog(
  facts: Record<string, unknown>,
  limit: LogLevel,
  append: (line: string) => void,
  last: LastWarning = { repeated: 0, reported: 0 },
  isDuplicate: (line: string) => boolean = () => false,
) {
  // Node loads ten modules for performance.now(), and none for hrtime.
  const started = process.hrtime.bigint()
  const callFacts = { ...facts }
  const isWritten = (level: LogLevel) => LOG_LEVELS.indexOf(level) <= LOG_LEVELS.indexOf(limit)
  const formatLine = (level: LogLevel, fields: Record<string, unknown>) =>
    formatLogLine({ time: new Date().toISOString(), level, pid: process.pid, ...fields })
  const write = (level: LogLevel, fields: Record<string, unknown>) => {
    if (isWritten(level)) append(formatLine(level, fields))
  }
  const duplicates: string[] = []
  const subject = () => {
    const { verb, directory, pod } = callFacts
    return { verb, directory, ...(pod !== undefined && { pod }) }
  }
  const writeRepeats = () => {
    const repeated = last.repeated - last.reported
    if (repeated > 0) write('warn', { ...subject(), message: last.message, repeated })
    last.reported = last.repeated
  }
  return {
    note(facts: Record<string, unknown>): void {
      Object.assign(callFacts, facts)
    },

    warn(message: string, code?: FaultCode): void {
      if (message === last.message) {
        last.repeated++
        if (isRepetitionReported(last.repeated)) writeRepeats()
        return
      }
      writeRepeats()
      Object.assign(last, { message, repeated: 0, reported: 0 })
      if (!isWritten('warn')) return
      const line = formatLine('warn', { ...subject(), message, ...(code && { code }) })
      if (isDuplicate(line)) duplicates.push(line)
      else append(line)
    },

    /** Writes the progress of a long call. */
    progress: (facts: Record<string, unknown>) => write('info', { ...subject(), ...facts }),

    /** @param error the reason of a failure. Its stack is written only here */
    end(outcome: string, error?: unknown): void {
      writeRepeats()
      const durationMs = Math.round(Number(process.hrtime.bigint() - started) / 1e5) / 10
      const refused = error instanceof Refusal && { isRefused: true, codes: error.faults.map(({ code }) => code) }
      const cause = error instanceof Error ? { ...refused, error: error.message, stack: error.stack } : {}
      const hasFailed = error !== undefined
      if (!hasFailed) for (const line of duplicates) append(line)
      const repeated = hasFailed && duplicates.length > 0 && { repeatedWarnings: duplicates.length }
      write(hasFailed ? 'error' : 'info', { ...callFacts, outcome, durationMs, ...repeated, ...cause })
    },
  }
}

/** Limit of a line with its newline. */
const MAX_LOG_LINE_BYTES = 4096

/** Limit of a stack: only its first frames are useful, and the line contains the error's message already. */
const MAX_ERROR_STACK_BYTES = 512

/** Limits of each text in a line that would be too long, tried one after the other. */
const LOG_TEXT_LIMITS_BYTES = [2048, 1024, 512, 256, 128, 64, 32]

/** A list keeps one item for each of so many bytes that a text keeps. */
const TEXT_BYTES_PER_LIST_ITEM = 32

/**
 * Formats an entry of the log as a line of JSON without its newline. A line has at most 4 KiB, because pods' authors choose
 * much of its text. Each truncated text shows how many bytes were cut, and `cut` is the number for the whole line.
 */
export function formatLogLine(entry: Readonly<Record<string, unknown>>): string {
  const whole = escapeJson(JSON.stringify(entry))
  const size = Buffer.byteLength(whole)
  if (size < MAX_LOG_LINE_BYTES) return whole
  for (const kept of LOG_TEXT_LIMITS_BYTES) {
    const shortened = Object.entries(entry).map(([key, value]) => [
      key,
      truncateLogFact(value, key === 'stack' ? Math.min(kept, MAX_ERROR_STACK_BYTES) : kept),
    ])
    const line = formatEntryWithCutBytes(Object.fromEntries(shortened), size)
    if (Buffer.byteLength(line) < MAX_LOG_LINE_BYTES) return line
  }
  // The entry has many short facts.
  return formatEntryWithCutBytes(
    Object.fromEntries(
      Object.entries(entry)
        .slice(0, LOG_TEXT_LIMITS_BYTES.length)
        .map(([key, value]) => [key, truncateLogFact(value, 32)]),
    ),
    size,
  )
}

function formatEntryWithCutBytes(entry: Readonly<Record<string, unknown>>, size: number): string {
  return escapeJson(JSON.stringify({ ...entry, cut: size - Buffer.byteLength(escapeJson(JSON.stringify(entry))) }))
}

function truncateLogFact(value: unknown, kept: number): unknown {
  if (typeof value === 'string') return truncateText(value, kept)
  if (typeof value !== 'object' || value === null) return value
  const most = Math.ceil(kept / TEXT_BYTES_PER_LIST_ITEM)
  if (Array.isArray(value)) {
    const items = value.slice(0, most).map((item) => truncateLogFact(item, kept))
    return value.length > most ? [...items, `… (${value.length - most} more)`] : items
  }
  const all = Object.entries(value)
  const facts = all.slice(0, most).map(([key, item]) => [truncateText(key, kept), truncateLogFact(item, kept)])
  return Object.fromEntries(all.length > most ? [...facts, ['…', `${all.length - most} more`]] : facts)
}

function truncateText(text: string, kept: number): string {
  const bytes = Buffer.from(text)
  if (bytes.length <= kept) return text
  // The first bytes of a truncated character decode to U+FFFD.
  return `${bytes.toString('utf8', 0, kept).replace(/\ufffd$/, '')}… (${bytes.length - kept} bytes cut)`
}
