import type * as grpc from '@grpc/grpc-js'
import { SocketServer, unary } from '../grpc/server.ts'
import type { Devices } from './devices.ts'
import type { DeviceList } from './messages.ts'
import { DevicePlugin, OPTIONS } from './service.ts'

type Watcher = grpc.ServerWritableStream<unknown, DeviceList>

export interface ServerEvents {
  /** Streams on which the devices are watched now. */
  watchers(count: number): void
  allocated(ids: readonly string[]): void
  refused(method: string, message: string): void
}

/** The plugin's own socket, what answers on it and who watches the devices there. */
export class DeviceServer {
  readonly socket: SocketServer
  readonly #watchers: Set<Watcher>

  private constructor(socket: SocketServer, watchers: Set<Watcher>) {
    this.socket = socket
    this.#watchers = watchers
  }

  /** Resolves once connections are accepted. @param list what is sent to a watcher first */
  static async listen(path: string, devices: Devices, list: () => DeviceList, events: ServerEvents) {
    const watchers = new Set<Watcher>()
    const socket = await SocketServer.listen(path, DevicePlugin, handlers(devices, list, watchers, events))
    return new DeviceServer(socket, watchers)
  }

  send(list: DeviceList): void {
    for (const watcher of this.#watchers) watcher.write(list)
  }

  /** Ends the watching, waits for calls under way, at most this long; the socket is gone from the directory then. */
  async close(graceMs: number): Promise<void> {
    const watchers = [...this.#watchers]
    // Nothing more is told of them.
    this.#watchers.clear()
    const closed = this.socket.close(graceMs)
    for (const watcher of watchers) watcher.end()
    await closed
  }
}

function handlers(devices: Devices, list: () => DeviceList, watchers: Set<Watcher>, events: ServerEvents) {
  const answer = <I, O>(name: string, reply: (request: I) => O) => unary(name, reply, events.refused)
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
    GetDevicePluginOptions: answer('GetDevicePluginOptions', () => OPTIONS),
    ListAndWatch: watch,
    GetPreferredAllocation: answer('GetPreferredAllocation', devices.prefer.bind(devices)),
    Allocate: answer('Allocate', (request: Parameters<Devices['allocate']>[0]) => {
      const reply = devices.allocate(request)
      events.allocated(request.container_requests.flatMap(({ devicesIDs }) => devicesIDs))
      return reply
    }),
    PreStartContainer: answer('PreStartContainer', ({ devicesIDs }: { devicesIDs: string[] }) => {
      devices.check(devicesIDs)
      return {}
    }),
  }
}
