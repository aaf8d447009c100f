import { once } from 'node:events'
import * as net from 'node:net'
import { setTimeout } from 'node:timers/promises'
import { formatError } from '../errors/refusal.ts'
import { openOwnSocket } from '../grpc/socket.ts'
import { type BackOff, computePauseMs } from '../host/back-off.ts'
import { showUserPaths } from '../host/path-handle.ts'
import type { LogLevel } from '../log/call-log.ts'
import type { PluginRecord } from '../store/server-records.ts'
import { coalesceCalls } from './concurrency.ts'
import { Connection } from './connection.ts'
import { codec, NRI_VERSION } from './messages.ts'
import { type ContainerHandler, createPluginService } from './service.ts'

interface ConnectionTiming extends BackOff {
  /** Time limit for the runtime to accept the registration, and again to send its pods and containers. */
  readonly registerMs: number
  /** Time limit at the plugin's end for running requests. The runtime continues without their answers. */
  readonly answerMs: number
}

/** Reconnects soon, because meanwhile the runtime creates containers without the plugin. */
export const CONNECTION_TIMING: ConnectionTiming = { firstMs: 100, mostMs: 2000, registerMs: 10_000, answerMs: 2000 }

interface PluginSettings {
  readonly socket: string
  /** Two digits. The runtime calls its plugins in the order of their indexes. */
  readonly index: string
  readonly handler: ContainerHandler
  readonly timing: ConnectionTiming
  /** Must not throw. */
  readonly log: (level: LogLevel, event: string, facts?: Record<string, unknown>) => void
}

/** Name of the plugin in the runtime and in its `required_plugins`. */
const PLUGIN_NAME = 'modekeep'

const registerRequest = codec('RegisterPluginRequest')

/** Serves the runtime until `stop` aborts, and reconnects after its restarts. */
export async function runNriPlugin(
  { socket, index, handler, timing, log }: PluginSettings,
  stop: AbortSignal,
): Promise<void> {
  let failures = 0
  let lastMessage: string | undefined
  while (!stop.aborted) {
    let readyAt = Number.POSITIVE_INFINITY
    try {
      const trunk = await connectToRuntime(socket, stop)
      await serveConnection(trunk, { index, handler: handler, timing, log }, stop, () => {
        readyAt = performance.now()
        lastMessage = undefined
      })
    } catch (error) {
      if (stop.aborted) break
      // The back-off continues if the runtime closes the connection soon after it sent its containers.
      if (performance.now() - readyAt > timing.mostMs) failures = 0
      failures++
      const message = formatError(error)
      // Logs a repeated reason once.
      if (message !== lastMessage) log('warn', 'away', { socket, message })
      lastMessage = message
    }
    const waitMs = computePauseMs(timing, Math.max(1, failures), Math.random())
    await setTimeout(waitMs, undefined, { signal: stop }).catch(() => {})
  }
}

async function connectToRuntime(path: string, stop: AbortSignal): Promise<net.Socket> {
  using held = openOwnSocket(path)
  const socket = net.connect({ path: held.link }).on('error', () => {})
  try {
    await once(socket, 'connect', { signal: stop })
    return socket
  } catch (error) {
    socket.destroy()
    throw showUserPaths(error, () => path)
  }
}

/** Serves one connection, from registration to its end. @throws Error unless `stop` ended it */
async function serveConnection(
  trunk: net.Socket,
  { index, handler, timing, log }: Omit<PluginSettings, 'socket'>,
  stop: AbortSignal,
  onReady: () => void,
): Promise<void> {
  const ready = Promise.withResolvers<void>()
  const onSynchronized = () => {
    onReady()
    ready.resolve()
  }
  const disconnected = new AbortController()
  const connection = new Connection(trunk, createPluginService(handler, log, onSynchronized, disconnected.signal))
  const end = () => void connection.closeWhenAnswered(timing.answerMs)
  stop.addEventListener('abort', end, { once: true })
  const registration = new AbortController()
  try {
    const identity = { pluginName: PLUGIN_NAME, pluginIdx: index, nriVersion: NRI_VERSION }
    await connection.call('RegisterPlugin', registerRequest.encode(identity), timing.registerMs)
    const ended = connection.ended.then((reason) => {
      throw reason ?? new Error('the runtime closed the connection')
    })
    const timeout = setTimeout(timing.registerMs, undefined, { signal: registration.signal }).then(() => {
      throw new Error(`the runtime has not told of its containers in ${timing.registerMs} ms`)
    })
    timeout.catch(() => {})
    await Promise.race([ready.promise, ended, timeout])
    registration.abort()
    await ended
  } finally {
    registration.abort()
    stop.removeEventListener('abort', end)
    connection.close()
    disconnected.abort()
  }
}

/**
 * Records from the plugin's events whether the runtime has the plugin registered. Records are written one after the other,
 * and only the newest of the waiting ones is written.
 */
export class RegistrationRecorder {
  readonly #write: (record: PluginRecord) => Promise<void>
  #record: PluginRecord
  #written: Promise<void>

  /** @param write writes a record in another process; must not reject */
  constructor(socket: string, write: (record: PluginRecord) => Promise<void>) {
    this.#write = coalesceCalls(write)
    this.#record = { isRegistered: false, runtime: '', since: Date.now(), socket }
    this.#written = this.#write(this.#record)
  }

  /** Settles once no record is being written. */
  get whenWritten(): Promise<void> {
    return this.#written
  }

  /** Updates the record for an event of the plugin's log. */
  observe(event: string, facts: Record<string, unknown> = {}): void {
    const { isRegistered } = this.#record
    if (event === 'configured') {
      const nri = typeof facts.nri === 'string' ? facts.nri : undefined
      this.#record = { ...this.#record, runtime: `${facts.runtime} ${facts.version}`, nri }
    }
    if (event === 'synchronized') this.#change(true)
    else if (event === 'away' && isRegistered) this.#change(false)
  }

  #change(isRegistered: boolean): void {
    this.#record = { ...this.#record, isRegistered, since: Date.now() }
    this.#written = this.#write(this.#record)
  }
}
