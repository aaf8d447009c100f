// Messages that a node's plugin and kubelet exchange, with the field numbers of CSI 1.12 and of kubelet's pluginregistration v1, for
// another implementation of protobuf than the one that is tested.

export const PROTO = `
syntax = "proto3";
package csi.v1;
message GetPluginInfoRequest {}
message GetPluginInfoResponse { string name = 1; string vendor_version = 2; map<string, string> manifest = 3; }
message GetPluginCapabilitiesRequest {}
message PluginCapability { int32 ignored = 15; }
message GetPluginCapabilitiesResponse { repeated PluginCapability capabilities = 1; }
message ProbeRequest {}
message BoolValue { bool value = 1; }
message ProbeResponse { BoolValue ready = 1; }
message MountVolume { string fs_type = 1; repeated string mount_flags = 2; string volume_mount_group = 3; }
message BlockVolume {}
enum Mode {
  UNKNOWN = 0; SINGLE_NODE_WRITER = 1; SINGLE_NODE_READER_ONLY = 2; MULTI_NODE_READER_ONLY = 3; MULTI_NODE_SINGLE_WRITER = 4;
  MULTI_NODE_MULTI_WRITER = 5; SINGLE_NODE_SINGLE_WRITER = 6; SINGLE_NODE_MULTI_WRITER = 7;
}
message AccessMode { Mode mode = 1; }
message VolumeCapability { oneof access_type { BlockVolume block = 1; MountVolume mount = 2; } AccessMode access_mode = 3; }
message NodePublishVolumeRequest {
  string volume_id = 1; map<string, string> publish_context = 2; string staging_target_path = 3; string target_path = 4;
  VolumeCapability volume_capability = 5; bool readonly = 6; map<string, string> secrets = 7; map<string, string> volume_context = 8;
}
message NodePublishVolumeResponse {}
message NodeUnpublishVolumeRequest { string volume_id = 1; string target_path = 2; }
message NodeUnpublishVolumeResponse {}
message NodeGetVolumeStatsRequest { string volume_id = 1; string volume_path = 2; string staging_target_path = 3; }
enum Unit { UNKNOWN_UNIT = 0; BYTES = 1; INODES = 2; }
message VolumeUsage { int64 available = 1; int64 total = 2; int64 used = 3; Unit unit = 4; }
message VolumeCondition { bool abnormal = 1; string message = 2; }
message NodeGetVolumeStatsResponse { repeated VolumeUsage usage = 1; VolumeCondition volume_condition = 2; }
enum Type { UNKNOWN_TYPE = 0; GET_VOLUME_STATS = 2; VOLUME_CONDITION = 4; SINGLE_NODE_MULTI = 5; VOLUME_MOUNT_GROUP = 6; }
message RPC { Type type = 1; }
message NodeServiceCapability { oneof type { RPC rpc = 1; } }
message NodeGetCapabilitiesRequest {}
message NodeGetCapabilitiesResponse { repeated NodeServiceCapability capabilities = 1; }
message NodeGetInfoRequest {}
message NodeGetInfoResponse { string node_id = 1; int64 max_volumes_per_node = 2; }
message NodeStageVolumeRequest { string volume_id = 1; }
message NodeStageVolumeResponse {}
message NodeUnstageVolumeRequest { string volume_id = 1; }
message NodeUnstageVolumeResponse {}
message NodeExpandVolumeRequest { string volume_id = 1; }
message NodeExpandVolumeResponse {}
`

export const REGISTRATION_PROTO = `
syntax = "proto3";
package pluginregistration;
message PluginInfo { string type = 1; string name = 2; string endpoint = 3; repeated string supported_versions = 4; }
message RegistrationStatus { bool plugin_registered = 1; string error = 2; }
message RegistrationStatusResponse {}
message InfoRequest {}
`
