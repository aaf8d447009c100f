import { open } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { Wakeup } from '../grpc/wakeup.ts'
import type { BackOff } from '../host/back-off.ts'
import { DirectoryWatches } from '../host/linux/directory-watches.ts'
import type { Level } from '../log/call-log.ts'
import { messageOf } from '../refusal/refusal.ts'
import { whyRootsAlone } from './access.ts'
import { type Action, advance, decide, type Event, START } from './decide.ts'
import { type DeviceServer, register, serveDevices } from './server.ts'
import { KUBELET_SOCKET, observe, socketName, sweep } from './sockets.ts'

/** In ms. */
export interface Timing extends BackOff {
  /** How long kubelet may take, after it accepted a registration, until it watches. */
  readonly graceMs: number
  /** Between two looks at the device and, should a change have been missed, at the directory. */
  readonly lookMs: number
  /** How long kubelet may take to answer a registration, and calls under way at the end. */
  readonly registerMs: number
  readonly drainMs: number
}

export const TIMING: Timing = {
  firstMs: 500,
  mostMs: 30_000,
  graceMs: 30_000,
  lookMs: 10_000,
  registerMs: 10_000,
  drainMs: 500,
}

export interface Settings {
  /** Where kubelet.sock is. */
  readonly directory: string
  /** The device, on the node. */
  readonly device: string
  readonly count: number
  readonly timing: Timing
  /** Must not throw. */
  readonly log: (level: Level, event: string, facts?: Record<string, unknown>) => void
}

/**
 * Offers the device to kubelet until stopped, over any number of kubelet's restarts.
 * @throws Error when the directory was removed under a bind mount, where only a new mount helps
 */
export async function runPlugin({ directory, device, count, timing, log }: Settings, stop: AbortSignal): Promise<void> {
  const wakeup = new Wakeup()
  const wake = () => wakeup.wake()
  // Where they fail the regular look remains.
  const watches = new DirectoryWatches(wake, ({ message }) => log('warn', 'watch-failed', { message }))
  let state = START
  let server: DeviceServer | undefined
  let asking: { abort: AbortController; end: Promise<void> } | undefined
  let health: { healthy: boolean; message?: string } | undefined
  let restriction: string | undefined
  let nextLook = 0

  function note(event: Event): void {
    state = advance(state, event, performance.now(), Math.random(), timing)
    wake()
  }

  function failed(event: string, kubelet: string, error: unknown): void {
    note({ type: 'failed', kubelet })
    const { times = 1, retryAt = 0 } = state.failed ?? {}
    log('warn', event, { message: messageOf(error), failures: times, retryMs: Math.round(retryAt - performance.now()) })
  }

  async function lookAtDevice(): Promise<void> {
    const before = health
    const { unhealthy, restricted } = await examine(device)
    health = unhealthy === undefined ? { healthy: true } : { healthy: false, message: unhealthy }
    nextLook = performance.now() + timing.lookMs
    // The devices stay healthy: to a pod that is root they are of use.
    if (restricted !== undefined && restricted !== restriction) log('warn', 'restricted', { message: restricted })
    restriction = restricted
    if (before?.healthy === health.healthy) return
    log(health.healthy ? 'info' : 'warn', 'health', health)
    server?.send()
  }

  async function listen(kubelet: string): Promise<void> {
    try {
      const removed = await sweep(directory, Date.now())
      if (removed.length > 0) log('info', 'swept', { sockets: removed })
      const path = join(directory, socketName(process.pid, Date.now()))
      const offer = { count, device, isHealthy: () => health?.healthy ?? false }
      server = await serveDevices(path, offer, {
        watchers: (count) => {
          log('info', 'watched', { watchers: count })
          note({ type: 'watchers', count })
        },
        allocated: (devices) => log('info', 'allocated', { devices }),
        refused: (method, message) => log('warn', 'refused', { method, message }),
      })
      log('info', 'listening', { socket: basename(path) })
      note({ type: 'listening' })
    } catch (error) {
      failed('listen-failed', kubelet, error)
    }
  }

  /** Not waited for: kubelet may be slow, and may be another one before it answers. */
  function ask(kubelet: string): void {
    const abort = new AbortController()
    const endpoint = basename(server?.socket.path ?? '')
    note({ type: 'asking', kubelet })
    const end = register(join(directory, KUBELET_SOCKET), endpoint, timing.registerMs, abort.signal).then(
      () => {
        if (abort.signal.aborted) return
        log('info', 'registered', { socket: endpoint })
        note({ type: 'registered', kubelet })
      },
      (error) => {
        if (!abort.signal.aborted) failed('register-failed', kubelet, error)
      },
    )
    asking = { abort, end }
  }

  async function abandon(): Promise<void> {
    asking?.abort.abort()
    await asking?.end
    asking = undefined
    note({ type: 'abandoned' })
  }

  async function close(): Promise<void> {
    await abandon()
    if (server === undefined) return
    const socket = basename(server.socket.path)
    await server.close(timing.drainMs)
    server = undefined
    log('info', 'closed', { socket })
    note({ type: 'closed' })
  }

  async function act(action: Action): Promise<void> {
    switch (action.do) {
      case 'wait':
        return wakeup.sleep(Math.max(0, Math.min(action.until, nextLook) - performance.now()))
      case 'listen':
        return listen(action.kubelet)
      case 'register':
        return ask(action.kubelet)
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
      if (performance.now() >= nextLook) await lookAtDevice()
      // Before the look, so that no change falls between the two. The parent tells of the directory's coming.
      watches.follow([directory, dirname(directory)])
      await act(decide(state, observe(directory, server?.socket), performance.now(), timing.graceMs))
    }
  } finally {
    watches.close()
    await close()
    log('info', 'end')
  }
}

/** What is wrong with a device: for everybody, and for who is not root. */
export interface Examined {
  unhealthy?: string | undefined
  restricted?: string | undefined
}

/** Only an open tells: the device may lack its kernel module, or be denied by its cgroup. */
export async function examine(device: string): Promise<Examined> {
  try {
    await using handle = await open(device, 'r+')
    const stat = await handle.stat()
    if (!stat.isCharacterDevice()) return { unhealthy: `${device} is not a character device` }
    return { restricted: whyRootsAlone(device, stat.mode) }
  } catch (error) {
    return { unhealthy: messageOf(error) }
  }
}
