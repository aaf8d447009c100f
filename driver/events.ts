import type { LogLevel } from '../src/log/call-log.ts'
import { escapeJson } from '../src/refusal/escape.ts'
import { formatError, Refusal } from '../src/refusal/refusal.ts'
import { writeAll, writeBytes } from './streams.ts'

/** Writes an event of a long-running process to stdout, as one line of JSON. */
export function logEvent(level: LogLevel, event: string, facts?: Record<string, unknown>): void {
  writeAll(formatEvent(level, event, facts))
}

function formatEvent(level: LogLevel, event: string, facts?: Record<string, unknown>): string {
  const line = JSON.stringify({ time: new Date().toISOString(), level, pid: process.pid, event, ...facts })
  return `${escapeJson(line)}\n`
}

/** Further events are dropped while stdout cannot be written. */
const MAX_PENDING_EVENTS = 10_000

/** Events that another thread writes, in their order, so that a slow reader of stdout delays no caller. */
export class EventQueue {
  readonly #pending: string[] = []
  #dropped = 0
  #writing: Promise<void> | undefined

  tell(level: LogLevel, event: string, facts?: Record<string, unknown>): void {
    if (this.#pending.length >= MAX_PENDING_EVENTS) this.#dropped++
    else this.#pending.push(formatEvent(level, event, facts))
    this.#writing ??= this.#write()
  }

  /** Settles once every queued event is written, or stdout is closed. */
  async flush(): Promise<void> {
    await this.#writing
  }

  async #write(): Promise<void> {
    // The caller continues before anything is written.
    await Promise.resolve()
    while (this.#pending.length > 0) {
      const lines = this.#pending.splice(0)
      if (this.#dropped > 0) lines.push(formatEvent('warn', 'dropped', { events: this.#dropped }))
      this.#dropped = 0
      await writeBytes(Buffer.from(lines.join(''))).catch(() => {})
    }
    this.#writing = undefined
  }
}

/** Logs why a long-running process ends. An error other than a Refusal is marked as unexpected. */
export function logFailure(error: unknown): void {
  logEvent('error', 'failed', {
    message: formatError(error),
    ...(error instanceof Refusal ? {} : { unexpected: true }),
  })
}
