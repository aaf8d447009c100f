import { once } from 'node:events'
import * as net from 'node:net'
import { setTimeout } from 'node:timers/promises'
import { formatError } from '../../errors/refusal.ts'
import { showUserPaths } from '../../kernel/path-handle.ts'
import { type BackOff, computePauseMs } from '../../kernel/waiting.ts'
import type { LogEvent } from '../../log/call-log.ts'
import { openOwnSocket } from '../../rpc/socket.ts'
import type { PluginRecord } from '../../state/process-records.ts'
import { Connection, type ServeMethod, Unimplemented } from './connection.ts'
import type { ContainerHandler } from './container-lifecycle.ts'
import { type Container, codec, EVENT, EVENT_MASK, type Mount, NRI_VERSION, type PodSandbox } from './protocol.ts'
import { coalesceCalls } from './worker-tasks.ts'

/** Events of a connection, which must not throw. */
interface ConnectionEvents {
  /** @param runtime its name and version @param nri undefined: the runtime does not report its version of NRI */
  onConfigured(runtime: string, nri: string | undefined): void
  /** The runtime has sent all its pods and containers. */
  onSynchronized(): void
}

type ContainerEvent = { pod?: PodSandbox | undefined; container?: Container | undefined }

/** Limit of the pods and containers that a runtime sends in parts. No node runs so many. */
const MAX_SYNCHRONIZED = 100_000

const EMPTY_RESPONSE = new Uint8Array()

const configureRequest = codec('ConfigureRequest')
const configureResponse = codec('ConfigureResponse')
const synchronizeRequest = codec('SynchronizeRequest')
const synchronizeResponse = codec('SynchronizeResponse')
const containerRequest = codec('ContainerRequest')
const createResponse = codec('CreateContainerResponse')
const stateChangeEvent = codec('StateChangeEvent')

/** Creates the plugin's service for one connection. */
function createPluginService(
  handler: ContainerHandler,
  log: LogEvent,
  { onConfigured, onSynchronized }: ConnectionEvents,
  disconnected: AbortSignal,
): ServeMethod {
  let pods: PodSandbox[] = []
  let containers: Container[] = []

  const dispatchEvent = (event: number, { pod, container }: ContainerEvent) => {
    if (event === EVENT.runPodSandbox && pod) handler.onSandboxStarted(pod)
    if (event === EVENT.stopPodSandbox && pod) handler.onSandboxStopped(pod.id)
    if (event === EVENT.postStartContainer && pod && container) handler.onStarted(pod, container)
    if ((event === EVENT.stopContainer || event === EVENT.removeContainer) && container) handler.onEnded(container.id)
    return EMPTY_RESPONSE
  }
  const createEventMethod = (event: number) => (payload: Uint8Array) =>
    dispatchEvent(event, containerRequest.decode(payload))

  const methods: Readonly<Record<string, (payload: Uint8Array) => Uint8Array | Promise<Uint8Array>>> = {
    Configure(payload) {
      const { runtimeName, runtimeVersion, requestTimeout, nriVersion } = configureRequest.decode(payload)
      const nri = nriVersion === '' ? undefined : nriVersion
      const requestTimeoutMs = requestTimeout > 0n ? Number(requestTimeout) : undefined
      log('info', 'configured', { runtime: runtimeName, version: runtimeVersion, nri, requestTimeoutMs })
      onConfigured(`${runtimeName} ${runtimeVersion}`, nri)
      return configureResponse.encode({ events: EVENT_MASK })
    },

    Synchronize(payload) {
      const part = synchronizeRequest.decode(payload)
      pods.push(...part.pods)
      containers.push(...part.containers)
      if (pods.length + containers.length > MAX_SYNCHRONIZED)
        throw new Error(`more than ${MAX_SYNCHRONIZED} pods and containers`)
      if (!part.more) {
        log('info', 'synchronized', { pods: pods.length, containers: containers.length })
        handler.synchronize(pods, containers)
        ;[pods, containers] = [[], []]
        onSynchronized()
      }
      return synchronizeResponse.encode({ more: part.more })
    },

    CreateContainer(payload) {
      const { pod, container } = containerRequest.decode(payload)
      if (pod === undefined || container === undefined) return EMPTY_RESPONSE
      const answer = handler.create(pod, container, disconnected)
      return answer === undefined ? EMPTY_RESPONSE : answer.then(encodeAdjustment)
    },

    // NRI before 0.12 sends all events by StateChange, later versions by a method of their own.
    StateChange(payload) {
      const change = stateChangeEvent.decode(payload)
      return dispatchEvent(change.event, change)
    },
    RunPodSandbox: createEventMethod(EVENT.runPodSandbox),
    StopPodSandbox: createEventMethod(EVENT.stopPodSandbox),
    PostStartContainer: createEventMethod(EVENT.postStartContainer),
    StopContainer: createEventMethod(EVENT.stopContainer),
    RemoveContainer: createEventMethod(EVENT.removeContainer),

    Shutdown() {
      log('info', 'shutdown')
      return EMPTY_RESPONSE
    },
  }

  return (method, payload) => {
    const serveMethod = Object.hasOwn(methods, method) ? methods[method] : undefined
    if (serveMethod === undefined) throw new Unimplemented(`the plugin has no method ${method}`)
    return serveMethod(payload)
  }
}

/** Encodes two entries for each mount: one with a dash, which removes the mount at the destination, and the new mount. */
function encodeAdjustment(mounts: readonly Mount[] | undefined): Uint8Array {
  if (mounts === undefined || mounts.length === 0) return EMPTY_RESPONSE
  const entries = mounts.flatMap((mount) => [
    { destination: `-${mount.destination}`, type: '', source: '', options: [] },
    mount,
  ])
  return createResponse.encode({ adjust: { mounts: entries } })
}

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
  /** Writes the plugin's record. Must not reject. */
  readonly writeRecord: (record: PluginRecord) => Promise<void>
  readonly log: LogEvent
}

/** Name of the plugin in the runtime and in its `required_plugins`. */
const PLUGIN_NAME = 'modekeep'

const registerRequest = codec('RegisterPluginRequest')

/** Serves the runtime until `stop` aborts, and reconnects after its restarts. Records whether the runtime has it registered. */
export async function runNriPlugin(settings: PluginSettings, stop: AbortSignal): Promise<void> {
  const { socket, timing, log } = settings
  // Only the newest of the waiting records is written.
  const writeRecord = coalesceCalls(settings.writeRecord)
  let record: PluginRecord = { isRegistered: false, runtime: '', since: Date.now(), socket }
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
      await serveConnection(trunk, settings, stop, events)
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
    const waitMs = computePauseMs(timing, Math.max(1, failures), Math.random())
    await setTimeout(waitMs, undefined, { signal: stop }).catch(() => {})
  }
  await written
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
  { index, handler, timing, log }: PluginSettings,
  stop: AbortSignal,
  events: ConnectionEvents,
): Promise<void> {
  const ready = Promise.withResolvers<void>()
  const onSynchronized = () => {
    events.onSynchronized()
    ready.resolve()
  }
  const disconnected = new AbortController()
  const service = createPluginService(handler, log, { ...events, onSynchronized }, disconnected.signal)
  const connection = new Connection(trunk, service)
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
