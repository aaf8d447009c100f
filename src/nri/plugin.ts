import { once } from 'node:events'
import * as net from 'node:net'
import { setTimeout } from 'node:timers/promises'
import { type BackOff, pause } from '../host/back-off.ts'
import type { Level } from '../log/call-log.ts'
import { messageOf } from '../refusal/refusal.ts'
import { Connection, type Serve, Unimplemented } from './connection.ts'
import {
  type Configuration,
  type Container,
  codec,
  EVENT,
  EVENT_MASK,
  type Mount,
  type PodSandbox,
} from './messages.ts'

/** What is done for the containers that a runtime tells of. */
export interface Containers {
  /**
   * Before it is created.
   * @param unheard once nobody waits for the answer any more
   * @returns the mounts that take the place of those at the same destinations; undefined: none
   * @throws {Refusal} (also later) where it must not be created
   */
  create(pod: PodSandbox, container: Container, unheard: AbortSignal): Promise<readonly Mount[] | undefined> | undefined
  /** It runs: its mounts are its own. Must not throw. */
  started(pod: PodSandbox, container: Container): void
  /** It has ended, or will never run. It may be told twice. Must not throw. */
  gone(container: string): void
  /** All its containers have ended, also those that never ran, of which nothing else is told. Must not throw. */
  sandboxStopped(sandbox: string): void
  /** All there are, at each connection, before anything else is told. Must not throw. */
  synchronize(pods: readonly PodSandbox[], containers: readonly Container[]): void
}

/** In ms. */
export interface Timing extends BackOff {
  /** How long the runtime may take to accept a registration, and then to tell of what there is. */
  readonly registerMs: number
  /** How long an end waits for the answers that are under way: a runtime goes on without those that do not come. */
  readonly answerMs: number
}

/** While it is away containers are created without it: it comes back soon. */
export const TIMING: Timing = { firstMs: 100, mostMs: 2000, registerMs: 10_000, answerMs: 2000 }

export interface Settings {
  readonly socket: string
  /** Two digits: the order in which the runtime asks its plugins. */
  readonly index: string
  readonly containers: Containers
  readonly timing: Timing
  /** Must not throw. */
  readonly log: (level: Level, event: string, facts?: Record<string, unknown>) => void
}

/** As the runtime and its `required_plugins` call it. */
export const PLUGIN_NAME = 'modekeep'

/** More than a node runs: what a runtime tells in parts is bounded. */
const MOST_TOLD = 100_000

const NOTHING = new Uint8Array()

const register = codec('RegisterPluginRequest')
const configure = codec('ConfigureRequest')
const configured = codec('ConfigureResponse')
const synchronize = codec('SynchronizeRequest')
const synchronized = codec('SynchronizeResponse')
const told = codec('ContainerRequest')
const created = codec('CreateContainerResponse')
const stateChange = codec('StateChangeEvent')

/** Serves the runtime until stopped, over any number of its restarts. */
export async function runPlugin(
  { socket, index, containers, timing, log }: Settings,
  stop: AbortSignal,
): Promise<void> {
  let failures = 0
  let said: string | undefined
  while (!stop.aborted) {
    let readyAt = Number.POSITIVE_INFINITY
    try {
      const trunk = await connect(socket, stop)
      await serve(trunk, { index, containers, timing, log }, stop, () => {
        readyAt = performance.now()
        said = undefined
      })
    } catch (error) {
      if (stop.aborted) break
      // A runtime that hangs up as soon as it has told of all is not to be asked to do so again and again.
      if (performance.now() - readyAt > timing.mostMs) failures = 0
      failures++
      const message = messageOf(error)
      // Each reason once, until it is another one.
      if (message !== said) log('warn', 'away', { socket, message })
      said = message
    }
    const waitMs = pause(timing, Math.max(1, failures), Math.random())
    await setTimeout(waitMs, undefined, { signal: stop }).catch(() => {})
  }
}

async function connect(path: string, stop: AbortSignal): Promise<net.Socket> {
  const socket = net.connect({ path }).on('error', () => {})
  try {
    await once(socket, 'connect', { signal: stop })
    return socket
  } catch (error) {
    socket.destroy()
    throw error
  }
}

/** From registration to the end of the connection. @throws Error where that was not wanted */
async function serve(
  trunk: net.Socket,
  { index, containers, timing, log }: Omit<Settings, 'socket'>,
  stop: AbortSignal,
  onReady: () => void,
): Promise<void> {
  const ready = Promise.withResolvers<void>()
  const onSynchronized = () => {
    onReady()
    ready.resolve()
  }
  const unheard = new AbortController()
  const connection = new Connection(trunk, methods(containers, log, onSynchronized, unheard.signal))
  const end = () => void connection.closeAnswered(timing.answerMs)
  stop.addEventListener('abort', end, { once: true })
  const late = new AbortController()
  try {
    const name = { pluginName: PLUGIN_NAME, pluginIdx: index, nriVersion: '' }
    await connection.call('RegisterPlugin', register.encode(name), timing.registerMs)
    const ended = connection.ended.then((reason) => {
      throw reason ?? new Error('the runtime closed the connection')
    })
    const timeout = setTimeout(timing.registerMs, undefined, { signal: late.signal }).then(() => {
      throw new Error(`the runtime has not told of its containers in ${timing.registerMs} ms`)
    })
    timeout.catch(() => {})
    await Promise.race([ready.promise, ended, timeout])
    late.abort()
    await ended
  } finally {
    late.abort()
    stop.removeEventListener('abort', end)
    connection.close()
    unheard.abort()
  }
}

/** The plugin's service, for one connection. */
function methods(
  containers: Containers,
  log: Settings['log'],
  onSynchronized: () => void,
  unheard: AbortSignal,
): Serve {
  let pods: PodSandbox[] = []
  let running: Container[] = []

  const hasStarted = (pod: PodSandbox | undefined, container: Container | undefined) => {
    if (pod !== undefined && container !== undefined) containers.started(pod, container)
    return NOTHING
  }
  const isGone = (container: Container | undefined) => {
    if (container !== undefined) containers.gone(container.id)
    return NOTHING
  }
  const hasStopped = (pod: PodSandbox | undefined) => {
    if (pod !== undefined) containers.sandboxStopped(pod.id)
    return NOTHING
  }

  const all: Readonly<Record<string, (payload: Uint8Array) => Uint8Array | Promise<Uint8Array>>> = {
    Configure(payload) {
      log('info', 'configured', facts(configure.decode(payload)))
      return configured.encode({ events: EVENT_MASK })
    },

    Synchronize(payload) {
      const part = synchronize.decode(payload)
      pods.push(...part.pods)
      running.push(...part.containers)
      if (pods.length + running.length > MOST_TOLD) throw new Error(`more than ${MOST_TOLD} pods and containers`)
      if (!part.more) {
        log('info', 'synchronized', { pods: pods.length, containers: running.length })
        containers.synchronize(pods, running)
        ;[pods, running] = [[], []]
        onSynchronized()
      }
      return synchronized.encode({ more: part.more })
    },

    CreateContainer(payload) {
      const { pod, container } = told.decode(payload)
      if (pod === undefined || container === undefined) return NOTHING
      const answer = containers.create(pod, container, unheard)
      return answer === undefined ? NOTHING : answer.then(adjustment)
    },

    // By one method for all in NRI before 0.12, by a method for each since.
    StateChange(payload) {
      const { event, pod, container } = stateChange.decode(payload)
      if (event === EVENT.stopPodSandbox) return hasStopped(pod)
      if (event === EVENT.postStartContainer) return hasStarted(pod, container)
      if (event === EVENT.stopContainer || event === EVENT.removeContainer) return isGone(container)
      return NOTHING
    },
    StopPodSandbox: (payload) => hasStopped(told.decode(payload).pod),
    PostStartContainer(payload) {
      const { pod, container } = told.decode(payload)
      return hasStarted(pod, container)
    },
    StopContainer: (payload) => isGone(told.decode(payload).container),
    RemoveContainer: (payload) => isGone(told.decode(payload).container),

    Shutdown() {
      log('info', 'shutdown')
      return NOTHING
    },
  }

  return (method, payload) => {
    const serveMethod = Object.hasOwn(all, method) ? all[method] : undefined
    if (serveMethod === undefined) throw new Unimplemented(`the plugin has no method ${method}`)
    return serveMethod(payload)
  }
}

/** A mount is replaced by two entries: one with a dash, which takes away what is at the destination, and the new one. */
function adjustment(mounts: readonly Mount[] | undefined): Uint8Array {
  if (mounts === undefined || mounts.length === 0) return NOTHING
  const entries = mounts.flatMap((mount) => [
    { destination: `-${mount.destination}`, type: '', source: '', options: [] },
    mount,
  ])
  return created.encode({ adjust: { mounts: entries } })
}

function facts({ runtimeName, runtimeVersion, requestTimeout, nriVersion }: Configuration): Record<string, unknown> {
  return {
    runtime: runtimeName,
    version: runtimeVersion,
    ...(nriVersion === '' ? {} : { nri: nriVersion }),
    ...(requestTimeout > 0n ? { requestTimeoutMs: Number(requestTimeout) } : {}),
  }
}
