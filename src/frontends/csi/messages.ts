import { createProtobufPackage, type ProtobufMessage } from '../../rpc/protobuf.ts'

/**
 * Messages of the Container Storage Interface for a node without a controller, with the field numbers of its csi.proto.
 * Fields that are neither sent nor read are left out (staging, topology, publish_context). An enumeration is an int32.
 */
export const CSI_MESSAGES = {
  /** google.protobuf.BoolValue */
  BoolValue: { value: [1, 'bool'] },
  GetPluginInfoRequest: {},
  GetPluginInfoResponse: { name: [1, 'string'], vendorVersion: [2, 'string'] },
  GetPluginCapabilitiesRequest: {},
  GetPluginCapabilitiesResponse: {},
  ProbeRequest: {},
  ProbeResponse: { ready: [1, 'BoolValue'] },
  NodeGetCapabilitiesRequest: {},
  /** NodeServiceCapability.RPC */
  RPC: { type: [1, 'int32'] },
  NodeServiceCapability: { rpc: [1, 'RPC'] },
  NodeGetCapabilitiesResponse: { capabilities: [1, 'NodeServiceCapability', 'repeated'] },
  NodeGetInfoRequest: {},
  NodeGetInfoResponse: { nodeId: [1, 'string'], maxVolumesPerNode: [2, 'int64'] },
  /** Nested in VolumeCapability, as is AccessMode. */
  BlockVolume: {},
  MountVolume: {
    fsType: [1, 'string'],
    mountFlags: [2, 'string', 'repeated'],
    volumeMountGroup: [3, 'string'],
  },
  AccessMode: { mode: [1, 'int32'] },
  VolumeCapability: { block: [1, 'BlockVolume'], mount: [2, 'MountVolume'], accessMode: [3, 'AccessMode'] },
  NodePublishVolumeRequest: {
    volumeId: [1, 'string'],
    targetPath: [4, 'string'],
    volumeCapability: [5, 'VolumeCapability'],
    readonly: [6, 'bool'],
    secrets: [7, 'string', 'map'],
    volumeContext: [8, 'string', 'map'],
  },
  NodePublishVolumeResponse: {},
  NodeUnpublishVolumeRequest: { volumeId: [1, 'string'], targetPath: [2, 'string'] },
  NodeUnpublishVolumeResponse: {},
  NodeGetVolumeStatsRequest: { volumeId: [1, 'string'], volumePath: [2, 'string'] },
  VolumeUsage: { available: [1, 'int64'], total: [2, 'int64'], used: [3, 'int64'], unit: [4, 'int32'] },
  VolumeCondition: { abnormal: [1, 'bool'], message: [2, 'string'] },
  NodeGetVolumeStatsResponse: {
    usage: [1, 'VolumeUsage', 'repeated'],
    volumeCondition: [2, 'VolumeCondition'],
  },
} as const

/** Messages of kubelet's plugin registration, v1. */
export const PLUGIN_REGISTRATION_MESSAGES = {
  InfoRequest: {},
  PluginInfo: {
    type: [1, 'string'],
    name: [2, 'string'],
    endpoint: [3, 'string'],
    supportedVersions: [4, 'string', 'repeated'],
  },
  RegistrationStatus: { pluginRegistered: [1, 'bool'], error: [2, 'string'] },
  RegistrationStatusResponse: {},
} as const

export type CsiMessage<N extends keyof typeof CSI_MESSAGES> = ProtobufMessage<typeof CSI_MESSAGES, N>

export const { codec, method } = createProtobufPackage('csi.v1', CSI_MESSAGES)
export const registrationProtobuf = createProtobufPackage('pluginregistration', PLUGIN_REGISTRATION_MESSAGES)

export const CsiIdentityService = {
  GetPluginInfo: method('Identity/GetPluginInfo', 'GetPluginInfoRequest', 'GetPluginInfoResponse'),
  GetPluginCapabilities: method(
    'Identity/GetPluginCapabilities',
    'GetPluginCapabilitiesRequest',
    'GetPluginCapabilitiesResponse',
  ),
  Probe: method('Identity/Probe', 'ProbeRequest', 'ProbeResponse'),
}

export const CsiNodeService = {
  NodeGetCapabilities: method('Node/NodeGetCapabilities', 'NodeGetCapabilitiesRequest', 'NodeGetCapabilitiesResponse'),
  NodeGetInfo: method('Node/NodeGetInfo', 'NodeGetInfoRequest', 'NodeGetInfoResponse'),
  NodePublishVolume: method('Node/NodePublishVolume', 'NodePublishVolumeRequest', 'NodePublishVolumeResponse'),
  NodeUnpublishVolume: method('Node/NodeUnpublishVolume', 'NodeUnpublishVolumeRequest', 'NodeUnpublishVolumeResponse'),
  NodeGetVolumeStats: method('Node/NodeGetVolumeStats', 'NodeGetVolumeStatsRequest', 'NodeGetVolumeStatsResponse'),
}

/** Service that kubelet calls on a plugin's registration socket. */
export const PluginRegistrationService = {
  GetInfo: registrationProtobuf.method('Registration/GetInfo', 'InfoRequest', 'PluginInfo'),
  NotifyRegistrationStatus: registrationProtobuf.method(
    'Registration/NotifyRegistrationStatus',
    'RegistrationStatus',
    'RegistrationStatusResponse',
  ),
}
