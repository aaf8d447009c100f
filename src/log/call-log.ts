import { Refusal } from '../refusal/refusal.ts'

export const LOG_LEVELS = ['error', 'warn', 'info', 'debug'] as const

export type Level = (typeof LOG_LEVELS)[number]

/** Collects what one call did; written as one JSON line when the call ends, warnings as lines of their own. */
export class CallLog {
  readonly #started = performance.now()
  readonly #facts: Record<string, unknown>
  readonly #append: (line: string) => void
  readonly #level: Level

  /** @param append takes one line without its newline and must not throw */
  constructor(facts: Record<string, unknown>, level: Level, append: (line: string) => void) {
    this.#facts = facts
    this.#level = level
    this.#append = append
  }

  note(facts: Record<string, unknown>): void {
    Object.assign(this.#facts, facts)
  }

  warn(message: string): void {
    this.#write('warn', { verb: this.#facts.verb, directory: this.#facts.directory, message })
  }

  /** What a call that takes long has done so far. */
  progress(facts: Record<string, unknown>): void {
    this.#write('info', { verb: this.#facts.verb, directory: this.#facts.directory, ...facts })
  }

  /** @param error the reason of a failure; its stack goes here and nowhere else */
  end(outcome: string, error?: unknown): void {
    const durationMs = Math.round((performance.now() - this.#started) * 10) / 10
    const isRefused = error instanceof Refusal && { isRefused: true }
    const cause = error instanceof Error ? { ...isRefused, error: error.message, stack: error.stack } : {}
    this.#write(error === undefined ? 'info' : 'error', { ...this.#facts, outcome, durationMs, ...cause })
  }

  #write(level: Level, facts: Record<string, unknown>): void {
    if (LOG_LEVELS.indexOf(level) > LOG_LEVELS.indexOf(this.#level)) return
    this.#append(JSON.stringify({ time: new Date().toISOString(), level, pid: process.pid, ...facts }))
  }
}
