import { open } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { Wakeup } from '../grpc/wakeup.ts'
import type { BackOff } from '../host/back-off.ts'
import { DirectoryWatches } from '../host/linux/directory-watches.ts'
import type { Level } from '../log/call-log.ts'
import { messageOf } from '../refusal/refusal.ts'
import { applyEvent, decideAction, INITIAL_STATE, type PluginAction, type PluginEvent } from './decide.ts'
import { explainRootOnly } from './device-access.ts'
import { type DeviceServer, registerPlugin, serveDevices } from './server.ts'
import { createSocketName, KUBELET_SOCKET, observeSockets, removeStaleSockets } from './sockets.ts'

/** In ms. */
export interface DevicePluginTiming extends BackOff {
  /** How long kubelet may take, after it accepted a registration, until it watches. */
  readonly graceMs: number
  /** Between two looks at the device and, should a change have been missed, at the directory. */
  readonly checkMs: number
  /** How long kubelet may take to answer a registration, and calls under way at the end. */
  readonly registerMs: number
  readonly drainMs: number
}

export const DEVICE_PLUGIN_TIMING: DevicePluginTiming = {
  firstMs: 500,
  mostMs: 30_000,
  graceMs: 30_000,
  checkMs: 10_000,
  registerMs: 10_000,
  drainMs: 500,
}

export interface DevicePluginSettings {
  /** Where kubelet.sock is. */
  readonly directory: string
  /** The device, on the node. */
  readonly device: string
  readonly count: number
  readonly timing: DevicePluginTiming
  /** Must not throw. */
  readonly log: (level: Level, event: string, facts?: Record<string, unknown>) => void
}

/**
 * Offers the device to kubelet until stopped, over any number of kubelet's restarts.
 * @throws Error when the directory was removed under a bind mount, where only a new mount helps
 */
export async function runDevicePlugin(
  { directory, device, count, timing, log }: DevicePluginSettings,
  stop: AbortSignal,
): Promise<void> {
  const wakeup = new Wakeup()
  const wake = () => wakeup.wake()
  // Where they fail the regular look remains.
  const watches = new DirectoryWatches(wake, ({ message }) => log('warn', 'watch-failed', { message }))
  let state = INITIAL_STATE
  let server: DeviceServer | undefined
  let registration: { abort: AbortController; end: Promise<void> } | undefined
  let health: { healthy: boolean; message?: string } | undefined
  let restriction: string | undefined
  let nextCheck = 0

  function handleEvent(event: PluginEvent): void {
    state = applyEvent(state, event, performance.now(), Math.random(), timing)
    wake()
  }

  function handleFailure(event: string, kubelet: string, error: unknown): void {
    handleEvent({ type: 'failed', kubelet })
    const { times = 1, retryAt = 0 } = state.failed ?? {}
    log('warn', event, { message: messageOf(error), failures: times, retryMs: Math.round(retryAt - performance.now()) })
  }

  async function checkDevice(): Promise<void> {
    const before = health
    const { unhealthy, restricted } = await examineDevice(device)
    health = unhealthy === undefined ? { healthy: true } : { healthy: false, message: unhealthy }
    nextCheck = performance.now() + timing.checkMs
    // The devices stay healthy: to a pod that is root they are of use.
    if (restricted !== undefined && restricted !== restriction) log('warn', 'restricted', { message: restricted })
    restriction = restricted
    if (before?.healthy === health.healthy) return
    log(health.healthy ? 'info' : 'warn', 'health', health)
    server?.send()
  }

  async function listen(kubelet: string): Promise<void> {
    try {
      const removed = await removeStaleSockets(directory, Date.now())
      if (removed.length > 0) log('info', 'swept', { sockets: removed })
      const path = join(directory, createSocketName(process.pid, Date.now()))
      const offer = { count, device, isHealthy: () => health?.healthy ?? false }
      server = await serveDevices(path, offer, {
        watchers: (count) => {
          log('info', 'watched', { watchers: count })
          handleEvent({ type: 'watchers', count })
        },
        allocated: (devices) => log('info', 'allocated', { devices }),
        refused: (method, message) => log('warn', 'refused', { method, message }),
      })
      log('info', 'listening', { socket: basename(path) })
      handleEvent({ type: 'listening' })
    } catch (error) {
      handleFailure('listen-failed', kubelet, error)
    }
  }

  /** Not waited for: kubelet may be slow, and may be another one before it answers. */
  function startRegistration(kubelet: string): void {
    const abort = new AbortController()
    const endpoint = basename(server?.socket.path ?? '')
    handleEvent({ type: 'asking', kubelet })
    const end = registerPlugin(join(directory, KUBELET_SOCKET), endpoint, timing.registerMs, abort.signal).then(
      () => {
        if (abort.signal.aborted) return
        log('info', 'registered', { socket: endpoint })
        handleEvent({ type: 'registered', kubelet })
      },
      (error) => {
        if (!abort.signal.aborted) handleFailure('register-failed', kubelet, error)
      },
    )
    registration = { abort, end }
  }

  async function abandon(): Promise<void> {
    registration?.abort.abort()
    await registration?.end
    registration = undefined
    handleEvent({ type: 'abandoned' })
  }

  async function close(): Promise<void> {
    await abandon()
    if (server === undefined) return
    const socket = basename(server.socket.path)
    await server.close(timing.drainMs)
    server = undefined
    log('info', 'closed', { socket })
    handleEvent({ type: 'closed' })
  }

  async function act(action: PluginAction): Promise<void> {
    switch (action.do) {
      case 'wait':
        return wakeup.sleep(Math.max(0, Math.min(action.until, nextCheck) - performance.now()))
      case 'listen':
        return listen(action.kubelet)
      case 'register':
        return startRegistration(action.kubelet)
      case 'abandon':
        return abandon()
      case 'close':
        return close()
      case 'give-up':
        throw new Error(`${directory} was removed from the node under the mount it is seen through`)
    }
  }

  log('info', 'start', { directory, device, devices: count })
  stop.addEventListener('abort', wake, { once: true })
  try {
    while (!stop.aborted) {
      if (performance.now() >= nextCheck) await checkDevice()
      // Before the look, so that no change falls between the two. The parent tells of the directory's coming.
      watches.follow([directory, dirname(directory)])
      await act(decideAction(state, observeSockets(directory, server?.socket), performance.now(), timing.graceMs))
    }
  } finally {
    watches.close()
    await close()
    log('info', 'end')
  }
}

/** What is wrong with a device: for everybody, and for who is not root. */
export interface DeviceCondition {
  unhealthy?: string | undefined
  restricted?: string | undefined
}

/** Only an open tells: the device may lack its kernel module, or be denied by its cgroup. */
export async function examineDevice(device: string): Promise<DeviceCondition> {
  try {
    await using handle = await open(device, 'r+')
    const stat = await handle.stat()
    if (!stat.isCharacterDevice()) return { unhealthy: `${device} is not a character device` }
    return { restricted: explainRootOnly(device, stat.mode) }
  } catch (error) {
    return { unhealthy: messageOf(error) }
  }
}
