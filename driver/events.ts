import type { Level } from '../src/log/call-log.ts'
import { jsonText } from '../src/refusal/printable.ts'
import { messageOf, Refusal } from '../src/refusal/refusal.ts'
import { writeAll, writeBytes } from './streams.ts'

/** A line of JSON on stdout for what happens in a process that stays. */
export function logEvent(level: Level, event: string, facts?: Record<string, unknown>): void {
  writeAll(formatEvent(level, event, facts))
}

function formatEvent(level: Level, event: string, facts?: Record<string, unknown>): string {
  const line = JSON.stringify({ time: new Date().toISOString(), level, pid: process.pid, event, ...facts })
  return `${jsonText(line)}\n`
}

/** More are dropped while stdout takes nothing. */
const MAX_PENDING_EVENTS = 10_000

/** Events that are written by another thread, in their order: a reader of stdout that is slow delays nobody. */
export class EventQueue {
  readonly #pending: string[] = []
  #dropped = 0
  #writing: Promise<void> | undefined

  tell(level: Level, event: string, facts?: Record<string, unknown>): void {
    if (this.#pending.length >= MAX_PENDING_EVENTS) this.#dropped++
    else this.#pending.push(formatEvent(level, event, facts))
    this.#writing ??= this.#write()
  }

  /** Settles once all that was told is written, or stdout is gone. */
  async flush(): Promise<void> {
    await this.#writing
  }

  async #write(): Promise<void> {
    // The caller goes on first.
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

/** Of a process that stays, and does not any more. What is no Refusal was not foreseen. */
export function logFailure(error: unknown): void {
  logEvent('error', 'failed', {
    message: messageOf(error),
    ...(error instanceof Refusal ? {} : { unexpected: true }),
  })
}
