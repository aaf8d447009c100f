import { setTimeout } from 'node:timers/promises'
import { EXIT_FAILURE, EXIT_SUCCESS } from '../src/cli/operate.ts'
import { readConfig } from '../src/config/read-config.ts'
import type { FaultCode } from '../src/errors/entries/index.ts'
import { escapeJson } from '../src/errors/escape.ts'
import { formatFaultCode, renderFault } from '../src/errors/fault.ts'
import { formatError, Refusal } from '../src/errors/refusal.ts'
import { linuxHost } from '../src/kernel/linux/index.ts'
import type { LogLevel } from '../src/log/call-log.ts'
import { refuseOtherMountNamespace } from '../src/repair/state.ts'
import { tryAcquireNodeLock } from '../src/state/locks.ts'
import type { Session } from '../src/state/session.ts'
import { createTerminationSignal, keepHeapSmall, MODEKEEP_VERSION } from './process.ts'
import { STDERR, writeBytesToStdout, writeWholeText } from './streams.ts'

const LOCK_POLL_INTERVAL_MS = 500

/** A server of which one runs on a node. */
interface SingleNodeServer {
  /** Name of its lock. */
  work: 'csi' | 'nri'
  /** For messages: `another CSI server`. */
  other: string
  /** Fields of the event `start`. */
  facts: Record<string, unknown>
}

type HostAndConfig = Pick<Session, 'host' | 'config'>

/**
 * Runs a server until SIGTERM or SIGINT, under the node's lock for it.
 * @param serve must end once `stop` aborts
 * @returns the exit status
 */
export async function runNodeServer(
  env: NodeJS.ProcessEnv,
  server: SingleNodeServer,
  serve: (store: HostAndConfig, stop: AbortSignal) => Promise<void>,
): Promise<number> {
  const stop = createTerminationSignal()
  keepHeapSmall()
  try {
    const { config, faults } = await readConfig(env)
    for (const fault of faults) logEvent('warn', 'configuration', { message: renderFault(fault) })
    const store = { host: linuxHost, config }
    refuseOtherMountNamespace({ ...store, note: () => {}, warn: () => {} })
    logEvent('info', 'start', { ...server.facts, version: MODEKEEP_VERSION })
    using lock = await waitForNodeLock(store, server, stop)
    if (lock === undefined) return EXIT_SUCCESS
    await serve(store, stop)
    logEvent('info', 'end')
    return EXIT_SUCCESS
  } catch (error) {
    logEvent('error', 'failed', {
      message: formatError(error),
      ...(error instanceof Refusal ? {} : { unexpected: true }),
    })
    return EXIT_FAILURE
  }
}

/** Waits until an older process that holds the lock has ended. @returns undefined if `stop` is aborted first */
async function waitForNodeLock(
  store: HostAndConfig,
  { work, other }: SingleNodeServer,
  stop: AbortSignal,
): Promise<Disposable | undefined> {
  for (let isLogged = false; !stop.aborted; ) {
    const lock = tryAcquireNodeLock(store, work)
    if (lock !== undefined) return lock
    if (!isLogged) logEvent('warn', 'waiting', { message: `${other} is at work on this node` })
    isLogged = true
    await setTimeout(LOCK_POLL_INTERVAL_MS, undefined, { signal: stop }).catch(() => {})
  }
  return undefined
}

/** Prints why a probe failed; kubelet shows the text in an event. @param reason undefined: success @returns the exit status */
export function reportProbeResult(reason: string | undefined, code: FaultCode): number {
  if (reason === undefined) return EXIT_SUCCESS
  writeWholeText(`${reason}${formatFaultCode(code)}\n`, STDERR)
  return EXIT_FAILURE
}

/** Writes an event of a long-running process to stdout, as one line of JSON. */
export function logEvent(level: LogLevel, event: string, facts?: Record<string, unknown>): void {
  writeWholeText(formatLogEvent(level, event, facts))
}

function formatLogEvent(level: LogLevel, event: string, facts?: Record<string, unknown>): string {
  const line = JSON.stringify({ time: new Date().toISOString(), level, pid: process.pid, event, ...facts })
  return `${escapeJson(line)}\n`
}

/** Further events are dropped while stdout cannot be written. */
const MAX_PENDING_LOG_EVENTS = 10_000

/** Events that another thread writes, in their order, so that a slow reader of stdout delays no caller. */
export class LogEventQueue {
  readonly #pending: string[] = []
  #dropped = 0
  #writing: Promise<void> | undefined

  enqueue(level: LogLevel, event: string, facts?: Record<string, unknown>): void {
    if (this.#pending.length >= MAX_PENDING_LOG_EVENTS) this.#dropped++
    else this.#pending.push(formatLogEvent(level, event, facts))
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
      if (this.#dropped > 0) lines.push(formatLogEvent('warn', 'dropped', { events: this.#dropped }))
      this.#dropped = 0
      await writeBytesToStdout(Buffer.from(lines.join(''))).catch(() => {})
    }
    this.#writing = undefined
  }
}
