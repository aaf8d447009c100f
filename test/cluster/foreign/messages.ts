import { createProtobufPackage } from '../../../src/rpc/protobuf.ts'

/** What kubelet asks a driver with a stage, by the numbers of csi.proto: modekeep's own has none. */
const { method } = createProtobufPackage('csi.v1', {
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
} as const)

export const Staged = {
  NodeStageVolume: method('Node/NodeStageVolume', 'NodeStageVolumeRequest', 'NodeStageVolumeResponse'),
  NodeUnstageVolume: method('Node/NodeUnstageVolume', 'NodeUnstageVolumeRequest', 'NodeUnstageVolumeResponse'),
  NodePublishVolume: method('Node/NodePublishVolume', 'NodePublishVolumeRequest', 'NodePublishVolumeResponse'),
}
