import { Refusal } from '../refusal/refusal.ts'

export const LOG_LEVELS = ['error', 'warn', 'info', 'debug'] as const

export type Level = (typeof LOG_LEVELS)[number]

export type CallLog = ReturnType<typeof callLog>

/**
 * Collects what one call did; written as one JSON line when the call ends, warnings as lines of their own.
 * @param append takes one line without its newline and must not throw
 */
export function callLog(facts: Record<string, unknown>, limit: Level, append: (line: string) => void) {
  // Not performance.now(), for which Node first loads ten modules.
  const started = process.hrtime.bigint()
  const noted = { ...facts }
  const write = (level: Level, told: Record<string, unknown>) => {
    if (LOG_LEVELS.indexOf(level) > LOG_LEVELS.indexOf(limit)) return
    append(JSON.stringify({ time: new Date().toISOString(), level, pid: process.pid, ...told }))
  }
  const subject = () => ({ verb: noted.verb, directory: noted.directory })
  return {
    note(facts: Record<string, unknown>): void {
      Object.assign(noted, facts)
    },

    warn: (message: string) => write('warn', { ...subject(), message }),

    /** What a call that takes long has done so far. */
    progress: (facts: Record<string, unknown>) => write('info', { ...subject(), ...facts }),

    /** @param error the reason of a failure; its stack goes here and nowhere else */
    end(outcome: string, error?: unknown): void {
      const durationMs = Math.round(Number(process.hrtime.bigint() - started) / 1e5) / 10
      const isRefused = error instanceof Refusal && { isRefused: true }
      const cause = error instanceof Error ? { ...isRefused, error: error.message, stack: error.stack } : {}
      write(error === undefined ? 'info' : 'error', { ...noted, outcome, durationMs, ...cause })
    },
  }
}
