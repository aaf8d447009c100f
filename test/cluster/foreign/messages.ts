import { protobufPackage } from '../../../src/grpc/protobuf.ts'

/** What kubelet and a driver with a stage say to each other, by the numbers of csi.proto. */
const { method } = protobufPackage('csi.v1', {
  GetPluginInfoRequest: {},
  GetPluginInfoResponse: { name: [1, 'string'], vendorVersion: [2, 'string'] },
  GetPluginCapabilitiesRequest: {},
  GetPluginCapabilitiesResponse: {},
  ProbeRequest: {},
  ProbeResponse: {},
  NodeGetInfoRequest: {},
  NodeGetInfoResponse: { nodeId: [1, 'string'] },
  NodeGetCapabilitiesRequest: {},
  RPC: { type: [1, 'int32'] },
  NodeServiceCapability: { rpc: [1, 'RPC'] },
  NodeGetCapabilitiesResponse: { capabilities: [1, 'NodeServiceCapability', 'repeated'] },
  NodeStageVolumeRequest: { volumeId: [1, 'string'], stagingTargetPath: [3, 'string'] },
  NodeStageVolumeResponse: {},
  NodeUnstageVolumeRequest: { volumeId: [1, 'string'], stagingTargetPath: [2, 'string'] },
  NodeUnstageVolumeResponse: {},
  NodePublishVolumeRequest: {
    volumeId: [1, 'string'],
    stagingTargetPath: [3, 'string'],
    targetPath: [4, 'string'],
    readonly: [6, 'bool'],
  },
  NodePublishVolumeResponse: {},
  NodeUnpublishVolumeRequest: { volumeId: [1, 'string'], targetPath: [2, 'string'] },
  NodeUnpublishVolumeResponse: {},
} as const)

export const Identity = {
  GetPluginInfo: method('Identity/GetPluginInfo', 'GetPluginInfoRequest', 'GetPluginInfoResponse'),
  GetPluginCapabilities: method(
    'Identity/GetPluginCapabilities',
    'GetPluginCapabilitiesRequest',
    'GetPluginCapabilitiesResponse',
  ),
  Probe: method('Identity/Probe', 'ProbeRequest', 'ProbeResponse'),
}

export const Node = {
  NodeGetInfo: method('Node/NodeGetInfo', 'NodeGetInfoRequest', 'NodeGetInfoResponse'),
  NodeGetCapabilities: method('Node/NodeGetCapabilities', 'NodeGetCapabilitiesRequest', 'NodeGetCapabilitiesResponse'),
  NodeStageVolume: method('Node/NodeStageVolume', 'NodeStageVolumeRequest', 'NodeStageVolumeResponse'),
  NodeUnstageVolume: method('Node/NodeUnstageVolume', 'NodeUnstageVolumeRequest', 'NodeUnstageVolumeResponse'),
  NodePublishVolume: method('Node/NodePublishVolume', 'NodePublishVolumeRequest', 'NodePublishVolumeResponse'),
  NodeUnpublishVolume: method('Node/NodeUnpublishVolume', 'NodeUnpublishVolumeRequest', 'NodeUnpublishVolumeResponse'),
}
