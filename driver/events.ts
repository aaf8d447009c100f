import type { Level } from '../src/log/call-log.ts'
import { jsonText } from '../src/refusal/printable.ts'
import { messageOf, Refusal } from '../src/refusal/refusal.ts'
import { writeAll } from './streams.ts'

/** A line of JSON on stdout for what happens in a process that stays. */
export function tellEvent(level: Level, event: string, facts?: Record<string, unknown>): void {
  const line = JSON.stringify({ time: new Date().toISOString(), level, pid: process.pid, event, ...facts })
  writeAll(`${jsonText(line)}\n`)
}

/** Of a process that stays, and does not any more. What is no Refusal was not foreseen. */
export function tellFailure(error: unknown): void {
  tellEvent('error', 'failed', {
    message: messageOf(error),
    ...(error instanceof Refusal ? {} : { unexpected: true }),
  })
}
