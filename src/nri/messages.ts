import { type Message, protobufPackage } from '../grpc/protobuf.ts'

/** Newest NRI release that these messages were compared with. Runtimes only log it, since NRI 0.10. */
export const NRI_VERSION = 'v0.12.0'

/**
 * Messages of NRI v1alpha1, with the field numbers of its api.proto. Fields that the plugin neither sends nor reads are
 * left out. An enumeration is declared as int32.
 */
const NRI_MESSAGES = {
  Empty: {},
  RegisterPluginRequest: { pluginName: [1, 'string'], pluginIdx: [2, 'string'], nriVersion: [3, 'string'] },
  ConfigureRequest: {
    config: [1, 'string'],
    runtimeName: [2, 'string'],
    runtimeVersion: [3, 'string'],
    registrationTimeout: [4, 'int64'],
    requestTimeout: [5, 'int64'],
    nriVersion: [6, 'string'],
  },
  ConfigureResponse: { events: [2, 'int32'] },
  Mount: { destination: [1, 'string'], type: [2, 'string'], source: [3, 'string'], options: [4, 'string', 'repeated'] },
  LinuxNamespace: { type: [1, 'string'], path: [2, 'string'] },
  LinuxContainer: { namespaces: [1, 'LinuxNamespace', 'repeated'] },
  /** Sent since NRI 0.11. */
  User: { uid: [1, 'uint32'], gid: [2, 'uint32'], additionalGids: [3, 'uint32', 'repeated'] },
  PodSandbox: {
    id: [1, 'string'],
    name: [2, 'string'],
    uid: [3, 'string'],
    namespace: [4, 'string'],
    annotations: [6, 'string', 'map'],
  },
  Container: {
    id: [1, 'string'],
    podSandboxId: [2, 'string'],
    name: [3, 'string'],
    state: [4, 'int32'],
    mounts: [9, 'Mount', 'repeated'],
    linux: [11, 'LinuxContainer'],
    user: [21, 'User'],
  },
  SynchronizeRequest: {
    pods: [1, 'PodSandbox', 'repeated'],
    containers: [2, 'Container', 'repeated'],
    more: [3, 'bool'],
  },
  SynchronizeResponse: { more: [2, 'bool'] },
  ContainerAdjustment: { mounts: [3, 'Mount', 'repeated'] },
  CreateContainerResponse: { adjust: [1, 'ContainerAdjustment'] },
  /** Has the common fields of all requests about a container or a sandbox: CreateContainer, PostStartContainer, StopPodSandbox, … */
  ContainerRequest: { pod: [1, 'PodSandbox'], container: [2, 'Container'] },
  StateChangeEvent: { event: [1, 'int32'], pod: [2, 'PodSandbox'], container: [3, 'Container'] },
} as const

type NriMessage<N extends keyof typeof NRI_MESSAGES> = Message<typeof NRI_MESSAGES, N>

export type PodSandbox = NriMessage<'PodSandbox'>
export type Container = NriMessage<'Container'>
export type Mount = NriMessage<'Mount'>
export type NriConfiguration = NriMessage<'ConfigureRequest'>

export const { codec } = protobufPackage('nri.pkg.api.v1alpha1', NRI_MESSAGES)

export const SERVICE = { plugin: 'nri.pkg.api.v1alpha1.Plugin', runtime: 'nri.pkg.api.v1alpha1.Runtime' } as const

/** Numbers of NRI's enumeration Event. */
export const EVENT = {
  runPodSandbox: 1,
  stopPodSandbox: 2,
  createContainer: 4,
  postStartContainer: 7,
  stopContainer: 10,
  removeContainer: 11,
} as const

/** Value of ConfigureResponse.events: bit n - 1 for event n. */
export const EVENT_MASK = Object.values(EVENT).reduce((mask, event) => mask | (1 << (event - 1)), 0)

/** Numbers of NRI's enumeration ContainerState. */
export const STATE = { created: 1, stopped: 4 } as const
