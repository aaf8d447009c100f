import * as fs from 'node:fs'
import * as net from 'node:net'
import * as grpc from '@grpc/grpc-js'
import { acceptPathAsAuthority } from '../grpc/authority.ts'
import { BadRequest, type Devices } from './devices.ts'
import type { DeviceList } from './messages.ts'
import { DevicePlugin } from './service.ts'

type Watcher = grpc.ServerWritableStream<unknown, DeviceList>

export interface ServerEvents {
  /** Streams on which the devices are watched now. */
  watchers(count: number): void
  allocated(ids: readonly string[]): void
  refused(method: string, message: string): void
}

/** The plugin's own socket and what answers on it. */
export class DeviceServer {
  readonly path: string
  readonly inode: bigint
  readonly #listener: net.Server
  readonly #server: grpc.Server
  readonly #watchers: Set<Watcher>

  private constructor(path: string, listener: net.Server, server: grpc.Server, watchers: Set<Watcher>) {
    this.path = path
    this.inode = fs.lstatSync(path, { bigint: true }).ino
    this.#listener = listener
    this.#server = server
    this.#watchers = watchers
  }

  /** Resolves once connections are accepted. @param list what is sent to a watcher first */
  static async listen(path: string, devices: Devices, list: () => DeviceList, events: ServerEvents) {
    const watchers = new Set<Watcher>()
    const server = new grpc.Server({ 'grpc.enable_channelz': 0 })
    server.addService(DevicePlugin, handlers(devices, list, watchers, events))
    const injector = server.createConnectionInjector(grpc.ServerCredentials.createInsecure())
    const listener = net.createServer((socket) => injector.injectConnection(acceptPathAsAuthority(socket)))
    try {
      await new Promise<void>((resolve, reject) => {
        listener.once('error', reject)
        listener.listen(path, () => resolve())
      })
      listener.on('error', () => {})
      return new DeviceServer(path, listener, server, watchers)
    } catch (error) {
      listener.close()
      server.forceShutdown()
      throw error
    }
  }

  send(list: DeviceList): void {
    for (const watcher of this.#watchers) watcher.write(list)
  }

  /** Ends the watching, waits for calls under way, at most this long; the socket is gone from the directory then. */
  async close(graceMs: number): Promise<void> {
    const closed = new Promise((resolve) => this.#listener.close(resolve))
    const watchers = [...this.#watchers]
    // Nothing more is told of them.
    this.#watchers.clear()
    for (const watcher of watchers) watcher.end()
    const timer = setTimeout(() => this.#server.forceShutdown(), graceMs)
    await new Promise<void>((resolve) => this.#server.tryShutdown(() => resolve()))
    clearTimeout(timer)
    this.#server.forceShutdown()
    await closed
  }
}

function handlers(devices: Devices, list: () => DeviceList, watchers: Set<Watcher>, events: ServerEvents) {
  const unary =
    <I, O>(method: string, reply: (request: I) => O): grpc.handleUnaryCall<I, O> =>
    ({ request }, answer) => {
      try {
        answer(null, reply(request))
      } catch (error) {
        const message = error instanceof Error ? error.message : String(error)
        events.refused(method, message)
        answer({ code: error instanceof BadRequest ? grpc.status.INVALID_ARGUMENT : grpc.status.INTERNAL, message })
      }
    }
  const watch = (watcher: Watcher) => {
    const gone = () => {
      if (watchers.delete(watcher)) events.watchers(watchers.size)
    }
    for (const event of ['cancelled', 'close', 'finish', 'error']) watcher.on(event, gone)
    watchers.add(watcher)
    watcher.write(list())
    events.watchers(watchers.size)
  }
  return {
    GetDevicePluginOptions: unary('GetDevicePluginOptions', () => OPTIONS),
    ListAndWatch: watch,
    GetPreferredAllocation: unary('GetPreferredAllocation', devices.prefer.bind(devices)),
    Allocate: unary('Allocate', (request: Parameters<Devices['allocate']>[0]) => {
      const reply = devices.allocate(request)
      events.allocated(request.container_requests.flatMap(({ devicesIDs }) => devicesIDs))
      return reply
    }),
    PreStartContainer: unary('PreStartContainer', ({ devicesIDs }: { devicesIDs: string[] }) => {
      devices.check(devicesIDs)
      return {}
    }),
  }
}

/** All devices are alike and need no preparation: kubelet need not ask, though it is answered. */
export const OPTIONS = { pre_start_required: false, get_preferred_allocation_available: false }
