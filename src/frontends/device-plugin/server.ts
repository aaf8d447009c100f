import type * as grpc from '@grpc/grpc-js'
import { quoteValue } from '../../errors/refusal.ts'
import { callGrpcMethodOnce } from '../../rpc/client.ts'
import { createProtobufPackage, type ProtobufMessage } from '../../rpc/protobuf.ts'
import {
  createUnaryCallHandlers,
  type GrpcSocketServer,
  InvalidArgumentError,
  listenOnGrpcSocket,
} from '../../rpc/server.ts'

/**
 * Messages of kubelet's device plugin API v1beta1, with the field numbers of its api.proto. Fields that the plugin neither
 * sends nor reads are left out (topology, environment, mounts, annotations).
 */
export const DEVICE_PLUGIN_MESSAGES = {
  Empty: {},
  DevicePluginOptions: { preStartRequired: [1, 'bool'], getPreferredAllocationAvailable: [2, 'bool'] },
  RegisterRequest: {
    version: [1, 'string'],
    endpoint: [2, 'string'],
    resourceName: [3, 'string'],
    options: [4, 'DevicePluginOptions'],
  },
  Device: { ID: [1, 'string'], health: [2, 'string'] },
  ListAndWatchResponse: { devices: [1, 'Device', 'repeated'] },
  ContainerAllocateRequest: { devicesIDs: [1, 'string', 'repeated'] },
  AllocateRequest: { containerRequests: [1, 'ContainerAllocateRequest', 'repeated'] },
  DeviceSpec: { containerPath: [1, 'string'], hostPath: [2, 'string'], permissions: [3, 'string'] },
  ContainerAllocateResponse: { devices: [3, 'DeviceSpec', 'repeated'] },
  AllocateResponse: { containerResponses: [1, 'ContainerAllocateResponse', 'repeated'] },
  PreStartContainerRequest: { devicesIDs: [1, 'string', 'repeated'] },
  PreStartContainerResponse: {},
  ContainerPreferredAllocationRequest: {
    availableDeviceIDs: [1, 'string', 'repeated'],
    mustIncludeDeviceIDs: [2, 'string', 'repeated'],
    allocationSize: [3, 'int32'],
  },
  PreferredAllocationRequest: { containerRequests: [1, 'ContainerPreferredAllocationRequest', 'repeated'] },
  ContainerPreferredAllocationResponse: { deviceIDs: [1, 'string', 'repeated'] },
  PreferredAllocationResponse: { containerResponses: [1, 'ContainerPreferredAllocationResponse', 'repeated'] },
} as const

type DevicePluginMessage<N extends keyof typeof DEVICE_PLUGIN_MESSAGES> = ProtobufMessage<
  typeof DEVICE_PLUGIN_MESSAGES,
  N
>

export const { codec, method } = createProtobufPackage('v1beta1', DEVICE_PLUGIN_MESSAGES)

/** Service that kubelet calls on the plugin's socket. */
export const DevicePluginService = {
  GetDevicePluginOptions: method('DevicePlugin/GetDevicePluginOptions', 'Empty', 'DevicePluginOptions'),
  ListAndWatch: method('DevicePlugin/ListAndWatch', 'Empty', 'ListAndWatchResponse', true),
  GetPreferredAllocation: method(
    'DevicePlugin/GetPreferredAllocation',
    'PreferredAllocationRequest',
    'PreferredAllocationResponse',
  ),
  Allocate: method('DevicePlugin/Allocate', 'AllocateRequest', 'AllocateResponse'),
  PreStartContainer: method('DevicePlugin/PreStartContainer', 'PreStartContainerRequest', 'PreStartContainerResponse'),
}

/** Method that a plugin calls on kubelet.sock. */
export const RegisterPluginMethod = method('Registration/Register', 'RegisterRequest', 'Empty')

/** Kubelet need not call GetPreferredAllocation or PreStartContainer, because all devices are alike and need no preparation. */
export const DEVICE_PLUGIN_OPTIONS: DevicePluginMessage<'DevicePluginOptions'> = {
  preStartRequired: false,
  getPreferredAllocationAvailable: false,
}

/** Name of the resource in pods. */
export const FUSE_RESOURCE_NAME = 'modekeep/fuse'

const MAX_DEVICE_IDS_IN_MESSAGE = 5

/**
 * IDs of the offered devices, which are all alike. Checking a request takes time linear in its size, and one with more IDs
 * than there are devices is refused by its length alone.
 */
export class OfferedDeviceIds {
  readonly #ids: ReadonlySet<string>

  constructor(count: number) {
    this.#ids = new Set(Array.from({ length: count }, (_, index) => `fuse-${index}`))
  }

  get all(): Iterable<string> {
    return this.#ids
  }

  /** @throws {InvalidArgumentError} if the request has more containers than there are devices */
  assertContainers(containers: readonly unknown[]): void {
    const count = this.#ids.size
    if (containers.length <= count) return
    throw new InvalidArgumentError(
      `the request has ${containers.length} containers, and ${FUSE_RESOURCE_NAME} has ${count} devices: send smaller requests`,
    )
  }

  /** @throws {InvalidArgumentError} for devices that are not offered */
  assertOffered(requested: readonly string[]): void {
    const count = this.#ids.size
    if (requested.length > count) {
      throw new InvalidArgumentError(
        `the request names ${requested.length} devices of ${FUSE_RESOURCE_NAME}, which has ${count}: name each device once`,
      )
    }
    const unknown: string[] = []
    for (const id of requested) {
      if (this.#ids.has(id)) continue
      unknown.push(quoteValue(id))
      if (unknown.length === MAX_DEVICE_IDS_IN_MESSAGE) break
    }
    if (unknown.length > 0) throw new InvalidArgumentError(`${FUSE_RESOURCE_NAME} has no device ${unknown.join(', ')}`)
  }

  /** Chooses the required devices, then the first available ones. */
  prefer(request: DevicePluginMessage<'ContainerPreferredAllocationRequest'>): { deviceIDs: string[] } {
    const { availableDeviceIDs, mustIncludeDeviceIDs, allocationSize: size } = request
    this.assertOffered(mustIncludeDeviceIDs)
    this.assertOffered(availableDeviceIDs)
    const included = new Set(mustIncludeDeviceIDs)
    const deviceIDs = [...included.union(new Set(availableDeviceIDs))]
    if (size < included.size || size > deviceIDs.length) {
      throw new InvalidArgumentError(
        `cannot choose ${size} of ${deviceIDs.length} devices, ${included.size} of them fixed`,
      )
    }
    return { deviceIDs: deviceIDs.slice(0, size) }
  }
}

/** Path of the device in containers, which FUSE libraries expect. */
const CONTAINER_DEVICE_PATH = '/dev/fuse'

type DeviceListResponse = DevicePluginMessage<'ListAndWatchResponse'>
type DeviceWatcherStream = grpc.ServerWritableStream<unknown, DeviceListResponse>

/** Devices that the plugin offers. */
interface DeviceOffer {
  /** Every device is the same device of the node, so the count only limits the containers that may use it. */
  readonly count: number
  /** Path of the device on the node. */
  readonly device: string
  isHealthy(): boolean
}

interface DevicePluginServerEvents {
  /** Is called with the number of streams on which kubelet watches the devices. */
  watchers(count: number): void
  allocated(ids: readonly string[]): void
  refused(method: string, message: string): void
}

/** Server on the plugin's own socket. */
export interface DevicePluginServer {
  readonly socket: GrpcSocketServer
  /** Sends the devices' health to all watchers. */
  send(): void
  /** Ends all watches, removes the socket, and waits for running calls for at most `graceMs`. */
  close(graceMs: number): Promise<void>
}

/** Starts the server. Resolves once it accepts connections. */
export async function startDevicePluginServer(
  path: string,
  offer: DeviceOffer,
  events: DevicePluginServerEvents,
): Promise<DevicePluginServer> {
  const ids = new OfferedDeviceIds(offer.count)
  const device = { containerPath: CONTAINER_DEVICE_PATH, hostPath: offer.device, permissions: 'rwm' }
  const watchers = new Set<DeviceWatcherStream>()

  function createDeviceList(): DeviceListResponse {
    const health = offer.isHealthy() ? 'Healthy' : 'Unhealthy'
    return { devices: Array.from(ids.all, (ID) => ({ ID, health })) }
  }

  const answers = createUnaryCallHandlers<typeof DevicePluginService>(events.refused, {
    GetDevicePluginOptions: () => DEVICE_PLUGIN_OPTIONS,
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
  const socket = await listenOnGrpcSocket(path, DevicePluginService, {
    ...answers,
    ListAndWatch(watcher: DeviceWatcherStream) {
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
 * @throws as `callGrpcMethodOnce`, also if aborted
 */
export async function registerDevicePlugin(
  kubelet: string,
  endpoint: string,
  timeoutMs: number,
  stop: AbortSignal,
): Promise<void> {
  stop.throwIfAborted()
  const request = { version: 'v1beta1', endpoint, resourceName: FUSE_RESOURCE_NAME, options: DEVICE_PLUGIN_OPTIONS }
  await callGrpcMethodOnce(kubelet, RegisterPluginMethod, request, timeoutMs, stop)
}
