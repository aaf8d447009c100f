import { basename, dirname, join } from 'node:path'
import { Wakeup } from '../grpc/wakeup.ts'
import { DirectoryWatches } from '../host/linux/directory-watches.ts'
import { messageOf } from '../refusal/refusal.ts'
import { type Action, advance, decide, type Event, START, type State } from './decide.ts'
import { Devices, whyUnhealthy } from './devices.ts'
import { register } from './registration.ts'
import { DeviceServer } from './server.ts'
import type { Settings } from './settings.ts'
import { KUBELET_SOCKET, observe, socketName, sweep } from './sockets.ts'

/**
 * Offers the device to kubelet until stopped, over any number of kubelet's restarts.
 * @throws Error when the directory was removed under a bind mount, where only a new mount helps
 */
export async function runPlugin(settings: Settings, stop: AbortSignal): Promise<void> {
  await new Plugin(settings).run(stop)
}

class Plugin {
  readonly #settings: Settings
  readonly #devices: Devices
  readonly #wakeup = new Wakeup()
  readonly #watches: DirectoryWatches
  #state: State = START
  #server: DeviceServer | undefined
  #asking: { abort: AbortController; end: Promise<void> } | undefined
  #unhealthy: string | undefined
  #lookAt = 0

  constructor(settings: Settings) {
    this.#settings = settings
    this.#devices = new Devices(settings.count, settings.device)
    this.#watches = new DirectoryWatches(
      () => this.#wakeup.wake(),
      // The regular look remains.
      (error) => settings.log('warn', 'watch-failed', { message: error.message }),
    )
  }

  async run(stop: AbortSignal): Promise<void> {
    const { directory, device, count, timing, now, log } = this.#settings
    log('info', 'start', { directory, device, devices: count })
    this.#unhealthy = await whyUnhealthy(device)
    this.#lookAt = now() + timing.lookMs
    log(this.#unhealthy === undefined ? 'info' : 'warn', 'health', this.#health())
    const wake = () => this.#wakeup.wake()
    stop.addEventListener('abort', wake)
    try {
      while (!stop.aborted) {
        if (now() >= this.#lookAt) await this.#lookAtDevice()
        // Before the look, so that no change falls between the two. The parent tells of the directory's coming.
        this.#watches.follow([directory, dirname(directory)])
        await this.#act(decide(this.#state, observe(directory, this.#server?.socket), now(), timing))
      }
    } finally {
      stop.removeEventListener('abort', wake)
      this.#watches.close()
      await this.#abandon()
      await this.#close()
      log('info', 'end')
    }
  }

  async #act(action: Action): Promise<void> {
    switch (action.do) {
      case 'wait': {
        const now = this.#settings.now()
        return this.#wakeup.sleep(Math.max(0, Math.min(action.until, this.#lookAt) - now))
      }
      case 'listen':
        return this.#listen(action.kubelet)
      case 'register':
        return this.#register(action.kubelet)
      case 'abandon':
        return this.#abandon()
      case 'close':
        await this.#abandon()
        return this.#close()
      case 'give-up':
        throw new Error(`${this.#settings.directory} was removed from the node under the mount it is seen through`)
    }
  }

  async #listen(kubelet: string): Promise<void> {
    const { directory, log } = this.#settings
    try {
      const removed = await sweep(directory, Date.now())
      if (removed.length > 0) log('info', 'swept', { sockets: removed })
      const path = join(directory, socketName(process.pid, Date.now()))
      this.#server = await DeviceServer.listen(path, this.#devices, () => this.#list(), {
        watchers: (count) => this.#watchers(count),
        allocated: (devices) => log('info', 'allocated', { devices }),
        refused: (method, message) => log('warn', 'refused', { method, message }),
      })
      log('info', 'listening', { socket: basename(path) })
      this.#note({ type: 'listening' })
    } catch (error) {
      this.#failed('listen-failed', kubelet, error)
    }
  }

  /** Not waited for: kubelet may be slow, and may be another one before it answers. */
  #register(kubelet: string): void {
    const { directory, timing, log } = this.#settings
    const abort = new AbortController()
    const endpoint = basename(this.#server?.socket.path ?? '')
    this.#note({ type: 'asking', kubelet })
    const asked = register(join(directory, KUBELET_SOCKET), endpoint, timing.registerMs, abort.signal).then(
      () => {
        if (abort.signal.aborted) return
        log('info', 'registered', { socket: endpoint })
        this.#note({ type: 'registered', kubelet })
      },
      (error) => {
        if (!abort.signal.aborted) this.#failed('register-failed', kubelet, error)
      },
    )
    this.#asking = { abort, end: asked }
  }

  async #abandon(): Promise<void> {
    this.#asking?.abort.abort()
    await this.#asking?.end
    this.#asking = undefined
    this.#note({ type: 'abandoned' })
  }

  async #close(): Promise<void> {
    const server = this.#server
    if (server === undefined) return
    await server.close(this.#settings.timing.drainMs)
    this.#server = undefined
    this.#settings.log('info', 'closed', { socket: basename(server.socket.path) })
    this.#note({ type: 'closed' })
  }

  #watchers(count: number): void {
    this.#settings.log('info', 'watched', { watchers: count })
    this.#note({ type: 'watchers', count })
  }

  #failed(event: string, kubelet: string, error: unknown): void {
    this.#note({ type: 'failed', kubelet })
    const { failures, retryAt } = this.#state
    const retryMs = Math.round(retryAt - this.#settings.now())
    this.#settings.log('warn', event, { message: messageOf(error), failures, retryMs })
  }

  #note(event: Event): void {
    const { now, random, timing } = this.#settings
    this.#state = advance(this.#state, event, now(), random(), timing)
    this.#wakeup.wake()
  }

  async #lookAtDevice(): Promise<void> {
    const { device, timing, now, log } = this.#settings
    const before = this.#unhealthy
    this.#unhealthy = await whyUnhealthy(device)
    this.#lookAt = now() + timing.lookMs
    if ((before === undefined) === (this.#unhealthy === undefined)) return
    log(this.#unhealthy === undefined ? 'info' : 'warn', 'health', this.#health())
    this.#server?.send(this.#list())
  }

  #health(): Record<string, unknown> {
    return this.#unhealthy === undefined ? { healthy: true } : { healthy: false, message: this.#unhealthy }
  }

  #list() {
    return this.#devices.list(this.#unhealthy === undefined)
  }
}
