/**
 * What csi-sanity calls of a driver's Identity and Node services, in the words of its `Describe` and `It`: kubernetes-csi/csi-test,
 * pkg/sanity/identity.go and node.go as of ginkgo 2. Its volumes come from CreateVolume, which modekeep does not have: the
 * tests take a directory of the node in their place.
 */
export const SUITE = [
  'GetPluginCapabilities should return appropriate capabilities',
  'Probe should return appropriate information',
  'GetPluginInfo should return appropriate information',
  'NodeGetCapabilities should return appropriate capabilities',
  'NodeGetInfo should return appropriate values',
  'NodePublishVolume should fail when no volume id is provided',
  'NodePublishVolume should fail when no target path is provided',
  'NodePublishVolume should fail when no volume capability is provided',
  'NodeUnpublishVolume should fail when no volume id is provided',
  'NodeUnpublishVolume should fail when no target path is provided',
  'NodeUnpublishVolume should remove target path',
  'NodeStageVolume should fail when no volume id is provided',
  'NodeStageVolume should fail when no staging target path is provided',
  'NodeStageVolume should fail when no volume capability is provided',
  'NodeUnstageVolume should fail when no volume id is provided',
  'NodeUnstageVolume should fail when no staging target path is provided',
  'NodeGetVolumeStats should fail when no volume id is provided',
  'NodeGetVolumeStats should fail when no volume path is provided',
  'NodeGetVolumeStats should fail when volume is not found',
  'NodeGetVolumeStats should fail when volume does not exist on the specified path',
  'NodeExpandVolume should fail when no volume id is provided',
  'NodeExpandVolume should fail when no volume path is provided',
  'NodeExpandVolume should fail when volume is not found',
  'NodeExpandVolume should work if node-expand is called after node-publish',
  'Node Service should work',
  'Node Service should be idempotent',
] as const

/** What the specification asks beyond it of calls that kubelet makes. */
export const BEYOND = [
  'NodePublishVolume should fail when no access mode is provided',
  'NodePublishVolume should fail when no access type is provided',
  'NodePublishVolume should fail when kubelet names no pod',
  'NodePublishVolume twice with the same arguments should change nothing',
  'NodePublishVolume twice with other arguments should fail, and leave what is published',
  'NodePublishVolume of SINGLE_NODE_SINGLE_WRITER should fail at a second target, and name the first',
  'NodePublishVolume of SINGLE_NODE_SINGLE_WRITER twice at one target should work',
  'NodePublishVolume of SINGLE_NODE_SINGLE_WRITER should work where the first target is unpublished or lost',
  'NodePublishVolume of every other mode should work at a second target',
  'NodeUnpublishVolume twice should work',
  'NodeUnpublishVolume of an unknown volume should work',
] as const

export type SanityCase = (typeof SUITE)[number] | (typeof BEYOND)[number]
