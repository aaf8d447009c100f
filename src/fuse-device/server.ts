import type * as grpc from '@grpc/grpc-js'
import { callOnce } from '../grpc/client.ts'
import { createUnaryHandlers, listenOnSocket, type SocketServer } from '../grpc/server.ts'
import { DeviceIds, RESOURCE } from './device-ids.ts'
import { DevicePlugin, type DevicePluginMessage, OPTIONS, Register } from './messages.ts'

/** Path of the device in containers, which FUSE libraries expect. */
const CONTAINER_PATH = '/dev/fuse'

type DeviceList = DevicePluginMessage<'ListAndWatchResponse'>
type Watcher = grpc.ServerWritableStream<unknown, DeviceList>

/** Devices that the plugin offers. */
interface DeviceOffer {
  /** Every device is the same device of the node, so the count only limits the containers that may use it. */
  readonly count: number
  /** Path of the device on the node. */
  readonly device: string
  isHealthy(): boolean
}

interface DeviceServerEvents {
  /** Is called with the number of streams on which kubelet watches the devices. */
  watchers(count: number): void
  allocated(ids: readonly string[]): void
  refused(method: string, message: string): void
}

/** Server on the plugin's own socket. */
export interface DeviceServer {
  readonly socket: SocketServer
  /** Sends the devices' health to all watchers. */
  send(): void
  /** Ends all watches, removes the socket, and waits for running calls for at most `graceMs`. */
  close(graceMs: number): Promise<void>
}

/** Starts the server. Resolves once it accepts connections. */
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
  const socket = await listenOnSocket(path, DevicePlugin, {
    ...answers,
    ListAndWatch(watcher: Watcher) {
      const remove = () => {
        if (watchers.delete(watcher)) events.watchers(watchers.size)
      }
      for (const event of ['cancelled', 'close', 'finish', 'error']) watcher.on(event, remove)
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
      // The end of these streams is not reported.
      watchers.clear()
      const closed = socket.close(graceMs)
      for (const watcher of watching) watcher.end()
      await closed
    },
  }
}

/**
 * Registers the plugin with kubelet, which then connects to the plugin's socket. Each registration has a connection of its
 * own, because a restarted kubelet has another socket.
 * @param endpoint name of the plugin's socket in kubelet's directory
 * @throws as `callOnce`, also if aborted
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
