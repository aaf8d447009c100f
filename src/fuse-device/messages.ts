import type { Field, Fields, Message } from '../grpc/wire.ts'

// The messages of kubelet's device plugin API v1beta1, by the numbers of its api.proto. Left out: fields the plugin neither
// sends nor reads (topology, environment, mounts, annotations).

const text = (number: number) => ({ number, kind: 'string' }) as const
const texts = (number: number) => ({ number, kind: 'string', repeated: true }) as const
const flag = (number: number) => ({ number, kind: 'bool' }) as const
const one = <F extends Fields>(number: number, kind: F) => ({ number, kind }) as const
const many = <F extends Fields>(number: number, kind: F) => ({ number, kind, repeated: true }) as const

export const Empty = {} satisfies Fields

export const DevicePluginOptions = { pre_start_required: flag(1), get_preferred_allocation_available: flag(2) }

export const RegisterRequest = {
  version: text(1),
  endpoint: text(2),
  resource_name: text(3),
  options: one(4, DevicePluginOptions),
}

export const Device = { ID: text(1), health: text(2) }
export const ListAndWatchResponse = { devices: many(1, Device) }

export const ContainerAllocateRequest = { devicesIDs: texts(1) }
export const AllocateRequest = { container_requests: many(1, ContainerAllocateRequest) }
export const DeviceSpec = { container_path: text(1), host_path: text(2), permissions: text(3) }
export const ContainerAllocateResponse = { devices: many(3, DeviceSpec) }
export const AllocateResponse = { container_responses: many(1, ContainerAllocateResponse) }

export const PreStartContainerRequest = { devicesIDs: texts(1) }
export const PreStartContainerResponse = {} satisfies Fields

export const ContainerPreferredAllocationRequest = {
  available_deviceIDs: texts(1),
  must_include_deviceIDs: texts(2),
  allocation_size: { number: 3, kind: 'int32' },
} as const satisfies Record<string, Field>
export const PreferredAllocationRequest = { container_requests: many(1, ContainerPreferredAllocationRequest) }
export const ContainerPreferredAllocationResponse = { deviceIDs: texts(1) }
export const PreferredAllocationResponse = { container_responses: many(1, ContainerPreferredAllocationResponse) }

export type DeviceList = Message<typeof ListAndWatchResponse>
export type Allocation = Message<typeof AllocateResponse>
export type Registration = Message<typeof RegisterRequest>
