import { type Message, protobufPackage } from '../grpc/protobuf.ts'

/**
 * Messages of kubelet's device plugin API v1beta1, with the field numbers of its api.proto. Fields that the plugin neither
 * sends nor reads are left out (topology, environment, mounts, annotations).
 */
export const MESSAGES = {
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

export type DevicePluginMessage<N extends keyof typeof MESSAGES> = Message<typeof MESSAGES, N>

export const { codec, method } = protobufPackage('v1beta1', MESSAGES)

/** Service that kubelet calls on the plugin's socket. */
export const DevicePlugin = {
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
export const Register = method('Registration/Register', 'RegisterRequest', 'Empty')

/** Kubelet need not call GetPreferredAllocation or PreStartContainer, because all devices are alike and need no preparation. */
export const OPTIONS: DevicePluginMessage<'DevicePluginOptions'> = {
  preStartRequired: false,
  getPreferredAllocationAvailable: false,
}
