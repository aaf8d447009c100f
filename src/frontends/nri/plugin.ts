import { once } from 'node:events'
import * as net from 'node:net'
import { setTimeout } from 'node:timers/promises'
import { formatError } from '../../errors/refusal.ts'
import { showUserPaths } from '../../kernel/path-handle.ts'
import { type BackOffLimits, computeBackOffPauseMs } from '../../kernel/waiting.ts'
import type { LogEvent } from '../../log/call-log.ts'
import { openTrustedSocket } from '../../rpc/socket.ts'
import type { NriPluginRecord } from '../../state/process-records.ts'
import { NriConnection } from './connection.ts'
import type { ContainerEventHandler } from './container-lifecycle.ts'
import { createNriPluginService, type PluginConnectionEvents } from './plugin-service.ts'
import { codec, NRI_VERSION } from './protocol.ts'
import { checkPluginRegistration, type ListRuntimeSandboxes } from './registration-check.ts'
import { coalesceCalls } from './worker-tasks.ts'

interface NriConnectionTiming extends BackOffLimits {
  /** Time limit for the runtime to accept the registration, and again to send its pods and containers. */
  readonly registerMs: number
  /** Time limit at the plugin's end for running requests. The runtime continues without their answers. */
  readonly answerMs: number
  /** Interval at which `listSandboxes` is called until the runtime has called the plugin. */
  readonly checkMs: number
}

/** Reconnects soon, because meanwhile the runtime creates containers without the plugin. */
export const NRI_CONNECTION_TIMING: NriConnectionTiming = {
  firstMs: 100,
  mostMs: 2000,
  registerMs: 10_000,
  answerMs: 2000,
  checkMs: 5000,
}

interface NriPluginSettings {
  readonly socket: string
  /** Two digits. The runtime calls its plugins in the order of their indexes. */
  readonly index: string
  readonly handler: ContainerEventHandler
  readonly timing: NriConnectionTiming
  /** Returns the sandboxes of each runtime of the node that responds. */
  readonly listSandboxes: ListRuntimeSandboxes
  /** Writes the plugin's record. Must not reject. */
  readonly writeRecord: (record: NriPluginRecord) => Promise<void>
  readonly log: LogEvent
}

/** Name of the plugin in the runtime and in its `required_plugins`. */
const NRI_PLUGIN_NAME = 'modekeep'

const registerPluginRequestCodec = codec('RegisterPluginRequest')

/** Serves the runtime until `stop` aborts, and reconnects after its restarts. Records whether the runtime has it registered. */
export async function runNriPlugin(settings: NriPluginSettings, stop: AbortSignal): Promise<void> {
  const { socket, timing, log } = settings
  // Only the newest of the waiting records is written.
  const writeRecord = coalesceCalls(settings.writeRecord)
  let record: NriPluginRecord = { isRegistered: false, runtime: '', since: Date.now(), socket }
  let written = writeRecord(record)
  const setRegistered = (isRegistered: boolean) => {
    record = { ...record, isRegistered, since: Date.now() }
    written = writeRecord(record)
  }
  let failures = 0
  let lastMessage: string | undefined
  while (!stop.aborted) {
    let readyAt = Number.POSITIVE_INFINITY
    try {
      const trunk = await connectToRuntime(socket, stop)
      const events = {
        onConfigured: (runtime: string, nri: string | undefined) => {
          record = { ...record, runtime, nri }
        },
        onSynchronized: () => {
          readyAt = performance.now()
          lastMessage = undefined
          setRegistered(true)
        },
      }
      await serveRuntimeConnection(trunk, settings, stop, events)
    } catch (error) {
      if (stop.aborted) break
      if (record.isRegistered) setRegistered(false)
      // The back-off continues if the runtime closes the connection soon after it sent its containers.
      if (performance.now() - readyAt > timing.mostMs) failures = 0
      failures++
      const message = formatError(error)
      // Logs a repeated reason once.
      if (message !== lastMessage) log('warn', 'away', { socket, message })
      lastMessage = message
    }
    const waitMs = computeBackOffPauseMs(timing, Math.max(1, failures), Math.random())
    await setTimeout(waitMs, undefined, { signal: stop }).catch(() => {})
  }
  await written
}

async function connectToRuntime(path: string, stop: AbortSignal): Promise<net.Socket> {
  using held = openTrustedSocket(path)
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
async function serveRuntimeConnection(
  trunk: net.Socket,
  { index, handler, timing, listSandboxes, log }: NriPluginSettings,
  stop: AbortSignal,
  events: PluginConnectionEvents,
): Promise<void> {
  const startedAt = performance.now()
  const ready = Promise.withResolvers<ReadonlySet<string>>()
  let isSynchronized = false
  const onSynchronized = (sandboxes: ReadonlySet<string>) => {
    events.onSynchronized(sandboxes)
    isSynchronized = true
    ready.resolve(sandboxes)
  }
  const disconnected = new AbortController()
  const called = new AbortController()
  const service = createNriPluginService(handler, log, { ...events, onSynchronized }, disconnected.signal)
  const connection = new NriConnection(trunk, (method, payload) => {
    if (isSynchronized) called.abort()
    return service(method, payload)
  })
  const end = () => void connection.closeWhenAnswered(timing.answerMs)
  stop.addEventListener('abort', end, { once: true })
  const registration = new AbortController()
  try {
    const identity = { pluginName: NRI_PLUGIN_NAME, pluginIdx: index, nriVersion: NRI_VERSION }
    await connection.call('RegisterPlugin', registerPluginRequestCodec.encode(identity), timing.registerMs)
    const ended = connection.ended.then((reason) => {
      throw reason ?? new Error('the runtime closed the connection')
    })
    const timeout = setTimeout(timing.registerMs, undefined, { signal: registration.signal }).then(() => {
      throw new Error(`the runtime has not told of its containers in ${timing.registerMs} ms`)
    })
    timeout.catch(() => {})
    const sandboxes = await Promise.race([ready.promise, ended, timeout])
    registration.abort()
    const stopCheck = AbortSignal.any([called.signal, disconnected.signal])
    const checked = checkPluginRegistration(
      listSandboxes,
      { startedAt, sandboxes },
      { intervalMs: timing.checkMs, stop: stopCheck },
    )
    await Promise.race([ended, checked.then(() => ended)])
  } finally {
    registration.abort()
    stop.removeEventListener('abort', end)
    connection.close()
    disconnected.abort()
  }
}
