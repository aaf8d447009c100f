import { setTimeout } from 'node:timers/promises'
import { FAILED, OK } from '../src/cli/operate.ts'
import type { FaultCode } from '../src/errors/entries/index.ts'
import { escapeJson } from '../src/errors/escape.ts'
import { formatCode } from '../src/errors/fault.ts'
import { formatError, Refusal } from '../src/errors/refusal.ts'
import type { LogLevel } from '../src/log/call-log.ts'
import { tryLockNode } from '../src/store/locks.ts'
import { writeAll, writeBytes } from './streams.ts'

const POLL_INTERVAL_MS = 500

/**
 * Takes the node's lock for a server. Waits until an older process that holds it has ended.
 * @param holder for messages: `another CSI server`
 * @returns undefined if `stop` is aborted first
 */
export async function waitForNodeLock(
  store: Parameters<typeof tryLockNode>[0],
  work: 'csi' | 'nri',
  holder: string,
  stop: AbortSignal,
): Promise<Disposable | undefined> {
  for (let isLogged = false; !stop.aborted; ) {
    const lock = tryLockNode(store, work)
    if (lock !== undefined) return lock
    if (!isLogged) logEvent('warn', 'waiting', { message: `${holder} is at work on this node` })
    isLogged = true
    await setTimeout(POLL_INTERVAL_MS, undefined, { signal: stop }).catch(() => {})
  }
  return undefined
}

const STDERR = 2

/** Prints why a probe failed; kubelet shows the text in an event. @param reason undefined: success @returns the exit status */
export function reportProbe(reason: string | undefined, code: FaultCode): number {
  if (reason === undefined) return OK
  writeAll(`${reason}${formatCode(code)}\n`, STDERR)
  return FAILED
}

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
