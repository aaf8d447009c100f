import { open } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { formatError } from '../../errors/refusal.ts'
import { DirectoryWatches } from '../../kernel/linux/watches.ts'
import type { BackOffLimits } from '../../kernel/waiting.ts'
import type { LogEvent } from '../../log/call-log.ts'
import {
  applyDevicePluginEvent,
  type DevicePluginAction,
  type DevicePluginEvent,
  decideDevicePluginAction,
  explainRootOnlyDevice,
  INITIAL_DEVICE_PLUGIN_STATE,
} from './decide.ts'
import { type DevicePluginServer, registerDevicePlugin, startDevicePluginServer } from './server.ts'
import {
  createPluginSocketName,
  KUBELET_SOCKET_NAME,
  observePluginSockets,
  removeStalePluginSockets,
} from './sockets.ts'

export interface DevicePluginTiming extends BackOffLimits {
  /** Time limit for kubelet to watch the devices after it accepted a registration. */
  readonly graceMs: number
  /** Interval between checks of the device, and of the directory in case a change was missed. */
  readonly checkMs: number
  /** Time limit for kubelet to answer a registration. */
  readonly registerMs: number
  /** Time limit for running calls when a server is closed. */
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
  /** Directory of kubelet.sock. */
  readonly directory: string
  /** Path of the device on the node. */
  readonly device: string
  readonly count: number
  readonly timing: DevicePluginTiming
  readonly log: LogEvent
}

/**
 * Offers the device to kubelet until `stop` aborts, and registers again after restarts of kubelet.
 * @throws Error if the directory was removed under a bind mount, which only a new mount repairs
 */
export async function runDevicePlugin(
  { directory, device, count, timing, log }: DevicePluginSettings,
  stop: AbortSignal,
): Promise<void> {
  const wakeup = new WakeableSleep()
  const wake = () => wakeup.wake()
  // If the watches fail, the regular check remains.
  const watches = new DirectoryWatches(wake, ({ message }) => log('warn', 'watch-failed', { message }))
  let state = INITIAL_DEVICE_PLUGIN_STATE
  let server: DevicePluginServer | undefined
  let registration: { abort: AbortController; end: Promise<void> } | undefined
  let health: { healthy: boolean; message?: string } | undefined
  let restriction: string | undefined
  let nextCheck = 0

  function handleEvent(event: DevicePluginEvent): void {
    state = applyDevicePluginEvent(state, event, performance.now(), Math.random(), timing)
    wake()
  }

  function handleFailure(event: string, kubelet: string, error: unknown): void {
    handleEvent({ type: 'failed', kubelet })
    const { times = 1, retryAt = 0 } = state.failed ?? {}
    log('warn', event, {
      message: formatError(error),
      failures: times,
      retryMs: Math.round(retryAt - performance.now()),
    })
  }

  async function checkDevice(): Promise<void> {
    const before = health
    const { unhealthy, restricted } = await examineDeviceCondition(device)
    health = unhealthy === undefined ? { healthy: true } : { healthy: false, message: unhealthy }
    nextCheck = performance.now() + timing.checkMs
    // A restricted device stays healthy, because pods that run as root can use it.
    if (restricted !== undefined && restricted !== restriction) log('warn', 'restricted', { message: restricted })
    restriction = restricted
    if (before?.healthy === health.healthy) return
    log(health.healthy ? 'info' : 'warn', 'health', health)
    server?.send()
  }

  async function listen(kubelet: string): Promise<void> {
    try {
      const removed = await removeStalePluginSockets(directory, Date.now())
      if (removed.length > 0) log('info', 'swept', { sockets: removed })
      const path = join(directory, createPluginSocketName(process.pid, Date.now()))
      const offer = { count, device, isHealthy: () => health?.healthy ?? false }
      server = await startDevicePluginServer(path, offer, {
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

  /** Does not wait for the answer, because kubelet may be slow, or restart before it answers. */
  function startRegistration(kubelet: string): void {
    const abort = new AbortController()
    const endpoint = basename(server?.socket.path ?? '')
    handleEvent({ type: 'asking', kubelet })
    const end = registerDevicePlugin(
      join(directory, KUBELET_SOCKET_NAME),
      endpoint,
      timing.registerMs,
      abort.signal,
    ).then(
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

  async function act(action: DevicePluginAction): Promise<void> {
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
      // Watches start before the observation, so that no change is missed. The parent reports that the directory was created.
      watches.follow([directory, dirname(directory)])
      await act(
        decideDevicePluginAction(
          state,
          observePluginSockets(directory, server?.socket),
          performance.now(),
          timing.graceMs,
        ),
      )
    }
  } finally {
    watches.close()
    await close()
    log('info', 'end')
  }
}

interface DeviceCondition {
  /** Fault for all users. */
  unhealthy?: string | undefined
  /** Fault for users other than root. */
  restricted?: string | undefined
}

/** Opens the device, because its kernel module may be missing, or the cgroup may deny it. */
export async function examineDeviceCondition(device: string): Promise<DeviceCondition> {
  try {
    await using handle = await open(device, 'r+')
    const stat = await handle.stat()
    if (!stat.isCharacterDevice()) return { unhealthy: `${device} is not a character device` }
    return { restricted: explainRootOnlyDevice(device, stat.mode) }
  } catch (error) {
    return { unhealthy: formatError(error) }
  }
}

/** Lets one waiter sleep until `wake` is called. A wake without a sleeper ends the next sleep at once. */
export class WakeableSleep {
  #awake = new AbortController()

  wake(): void {
    this.#awake.abort()
  }

  async sleep(maxMs: number): Promise<void> {
    await setTimeout(maxMs, undefined, { signal: this.#awake.signal }).catch(() => {})
    this.#awake = new AbortController()
  }
}
