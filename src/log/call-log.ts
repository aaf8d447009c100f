import { Refusal } from '../refusal/refusal.ts'
import { logLine } from './log-line.ts'

export const LOG_LEVELS = ['error', 'warn', 'info', 'debug'] as const

export type Level = (typeof LOG_LEVELS)[number]

export type CallLog = ReturnType<typeof callLog>

/** The last warning that was written, and how often it came again: of one call, or of several in a row. */
export interface LastWarning {
  message?: string
  repeated: number
  /** Of these, how often a line has told of. */
  told: number
}

/** After so many equal warnings, and each tenfold, a line says how many there were: a watch may never hear another one. */
const isTold = (repeated: number) => repeated >= 10 && /^10*$/.test(String(repeated))

/**
 * Collects what one call did; written as one JSON line when the call ends, warnings as lines of their own. Equal warnings
 * in a row are one line, and one more with how often the warning came again (`repeated`).
 * @param append takes one line without its newline and must not throw
 * @param last of the calls before, where several are one to who reads the log
 * @param isSaid whether earlier calls have written what a warning's line says: if the call fails, as those may have, its
 *   own line counts such warnings (`repeatedWarnings`), and they are not written again
 */
export function callLog(
  facts: Record<string, unknown>,
  limit: Level,
  append: (line: string) => void,
  last: LastWarning = { repeated: 0, told: 0 },
  isSaid: (line: string) => boolean = () => false,
) {
  // Not performance.now(), for which Node first loads ten modules.
  const started = process.hrtime.bigint()
  const noted = { ...facts }
  const isWritten = (level: Level) => LOG_LEVELS.indexOf(level) <= LOG_LEVELS.indexOf(limit)
  const lineOf = (level: Level, told: Record<string, unknown>) =>
    logLine({ time: new Date().toISOString(), level, pid: process.pid, ...told })
  const write = (level: Level, told: Record<string, unknown>) => {
    if (isWritten(level)) append(lineOf(level, told))
  }
  const said: string[] = []
  const subject = () => {
    const { verb, directory, pod } = noted
    return { verb, directory, ...(pod !== undefined && { pod }) }
  }
  const tellRepeated = () => {
    const repeated = last.repeated - last.told
    if (repeated > 0) write('warn', { ...subject(), message: last.message, repeated })
    last.told = last.repeated
  }
  return {
    note(facts: Record<string, unknown>): void {
      Object.assign(noted, facts)
    },

    warn(message: string): void {
      if (message === last.message) {
        last.repeated++
        if (isTold(last.repeated)) tellRepeated()
        return
      }
      tellRepeated()
      Object.assign(last, { message, repeated: 0, told: 0 })
      if (!isWritten('warn')) return
      const line = lineOf('warn', { ...subject(), message })
      if (isSaid(line)) said.push(line)
      else append(line)
    },

    /** What a call that takes long has done so far. */
    progress: (facts: Record<string, unknown>) => write('info', { ...subject(), ...facts }),

    /** @param error the reason of a failure; its stack goes here and nowhere else */
    end(outcome: string, error?: unknown): void {
      tellRepeated()
      const durationMs = Math.round(Number(process.hrtime.bigint() - started) / 1e5) / 10
      const isRefused = error instanceof Refusal && { isRefused: true }
      const cause = error instanceof Error ? { ...isRefused, error: error.message, stack: error.stack } : {}
      const hasFailed = error !== undefined
      if (!hasFailed) for (const line of said) append(line)
      const repeated = hasFailed && said.length > 0 && { repeatedWarnings: said.length }
      write(hasFailed ? 'error' : 'info', { ...noted, outcome, durationMs, ...repeated, ...cause })
    },
  }
}
