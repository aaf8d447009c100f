import type * as grpc from '@grpc/grpc-js'
import { callOnce } from '../grpc/client.ts'
import { createUnaryHandlers, listen, type SocketServer } from '../grpc/server.ts'
import { DeviceIds, RESOURCE } from './device-ids.ts'
import { type Content, DevicePlugin, OPTIONS, Register } from './messages.ts'

/** Where a container finds the device, and where FUSE libraries look. */
const CONTAINER_PATH = '/dev/fuse'

type DeviceList = Content<'ListAndWatchResponse'>
type Watcher = grpc.ServerWritableStream<unknown, DeviceList>

/** What is offered. */
interface DeviceOffer {
  /** Each device is the node's one device, so their count only bounds how many containers may have it. */
  readonly count: number
  /** As the container runtime finds it. */
  readonly device: string
  isHealthy(): boolean
}

interface DeviceServerEvents {
  /** Streams on which the devices are watched now. */
  watchers(count: number): void
  allocated(ids: readonly string[]): void
  refused(method: string, message: string): void
}

/** The plugin's own socket, what answers on it and who watches the devices there. */
export interface DeviceServer {
  readonly socket: SocketServer
  /** Tells all who watch how the devices are. */
  send(): void
  /** Ends the watching, waits for calls under way, at most this long; the socket is gone from the directory then. */
  close(graceMs: number): Promise<void>
}

/** Resolves once connections are accepted. */
export async function serveDevices(
  path: string,
  offer: DeviceOffer,
  events: DeviceServerEvents,
): Promise<DeviceServer> {
  const ids = new DeviceIds(offer.count)
  const device = { containerPath: CONTAINER_PATH, hostPath: offer.device, permissions: 'rwm' }
  const watchers = new Set<Watcher>()

  function createDeviceList(): DeviceList {
    const health = offer.isHealthy() ? 'Healthy' : 'Unhealthy'
    return { devices: Array.from(ids.all, (ID) => ({ ID, health })) }
  }

  const answers = createUnaryHandlers<typeof DevicePlugin>(events.refused, {
    GetDevicePluginOptions: () => OPTIONS,
    GetPreferredAllocation({ containerRequests }) {
      ids.assertContainers(containerRequests)
      return { containerResponses: containerRequests.map((request) => ids.prefer(request)) }
    },
    Allocate({ containerRequests }) {
      ids.assertContainers(containerRequests)
      const requested = containerRequests.map(({ devicesIDs }) => devicesIDs)
      const allocated = requested.flat()
      ids.assertOffered(allocated)
      events.allocated(allocated)
      return { containerResponses: requested.map(({ length }) => ({ devices: length > 0 ? [device] : [] })) }
    },
    PreStartContainer({ devicesIDs }) {
      ids.assertOffered(devicesIDs)
      return {}
    },
  })
  const socket = await listen(path, DevicePlugin, {
    ...answers,
    ListAndWatch(watcher: Watcher) {
      const gone = () => {
        if (watchers.delete(watcher)) events.watchers(watchers.size)
      }
      for (const event of ['cancelled', 'close', 'finish', 'error']) watcher.on(event, gone)
      watchers.add(watcher)
      watcher.write(createDeviceList())
      events.watchers(watchers.size)
    },
  })
  return {
    socket,
    send() {
      for (const watcher of watchers) watcher.write(createDeviceList())
    },
    async close(graceMs) {
      const watching = [...watchers]
      // Nothing more is told of them.
      watchers.clear()
      const closed = socket.close(graceMs)
      for (const watcher of watching) watcher.end()
      await closed
    },
  }
}

/**
 * Asks kubelet to call back. A connection for each: kubelet's socket may be another next time.
 * @param endpoint the plugin's socket, a name in the directory of kubelet's. @throws as `ask`, also when aborted
 */
export async function registerPlugin(
  kubelet: string,
  endpoint: string,
  timeoutMs: number,
  stop: AbortSignal,
): Promise<void> {
  stop.throwIfAborted()
  const request = { version: 'v1beta1', endpoint, resourceName: RESOURCE, options: OPTIONS }
  await callOnce(kubelet, Register, request, timeoutMs, stop)
}
