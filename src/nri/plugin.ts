import { once } from 'node:events'
import * as net from 'node:net'
import { setTimeout } from 'node:timers/promises'
import { openOwnSocket } from '../grpc/socket.ts'
import { type BackOff, pause } from '../host/back-off.ts'
import { withKnownPath } from '../host/path-handle.ts'
import type { Level } from '../log/call-log.ts'
import { messageOf } from '../refusal/refusal.ts'
import { Connection } from './connection.ts'
import { codec, NRI_VERSION } from './messages.ts'
import { type Containers, methods } from './service.ts'

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

const register = codec('RegisterPluginRequest')

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
  using held = openOwnSocket(path)
  const socket = net.connect({ path: held.link }).on('error', () => {})
  try {
    await once(socket, 'connect', { signal: stop })
    return socket
  } catch (error) {
    socket.destroy()
    throw withKnownPath(error, held.link, path)
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
    const name = { pluginName: PLUGIN_NAME, pluginIdx: index, nriVersion: NRI_VERSION }
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
