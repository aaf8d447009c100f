import { Refusal } from '../errors/refusal.ts'
import { formatLogLine } from './log-line.ts'

export const LOG_LEVELS = ['error', 'warn', 'info', 'debug'] as const

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
const isReported = (repeated: number) => repeated >= 10 && /^10*$/.test(String(repeated))

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

    warn(message: string): void {
      if (message === last.message) {
        last.repeated++
        if (isReported(last.repeated)) writeRepeats()
        return
      }
      writeRepeats()
      Object.assign(last, { message, repeated: 0, reported: 0 })
      if (!isWritten('warn')) return
      const line = formatLine('warn', { ...subject(), message })
      if (isDuplicate(line)) duplicates.push(line)
      else append(line)
    },

    /** Writes the progress of a long call. */
    progress: (facts: Record<string, unknown>) => write('info', { ...subject(), ...facts }),

    /** @param error the reason of a failure. Its stack is written only here */
    end(outcome: string, error?: unknown): void {
      writeRepeats()
      const durationMs = Math.round(Number(process.hrtime.bigint() - started) / 1e5) / 10
      const isRefused = error instanceof Refusal && { isRefused: true }
      const cause = error instanceof Error ? { ...isRefused, error: error.message, stack: error.stack } : {}
      const hasFailed = error !== undefined
      if (!hasFailed) for (const line of duplicates) append(line)
      const repeated = hasFailed && duplicates.length > 0 && { repeatedWarnings: duplicates.length }
      write(hasFailed ? 'error' : 'info', { ...callFacts, outcome, durationMs, ...repeated, ...cause })
    },
  }
}
