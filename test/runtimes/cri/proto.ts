// Messages of the container runtime interface that a kubelet and a runtime exchange for a pod, with the field numbers of runtime.v1.
// What a test does not need is left out.

export const PROTO = `
syntax = "proto3";
package runtime.v1;
message Int64Value { int64 value = 1; }
message IDMapping { uint32 host_id = 1; uint32 container_id = 2; uint32 length = 3; }
enum NamespaceMode { POD = 0; CONTAINER = 1; NODE = 2; TARGET = 3; }
message UserNamespace { NamespaceMode mode = 1; repeated IDMapping uids = 2; repeated IDMapping gids = 3; }
message NamespaceOption {
  NamespaceMode network = 1; NamespaceMode pid = 2; NamespaceMode ipc = 3; string target_id = 4; UserNamespace userns_options = 5;
}
message PodSandboxMetadata { string name = 1; string uid = 2; string namespace = 3; uint32 attempt = 4; }
message LinuxSandboxSecurityContext {
  NamespaceOption namespace_options = 1; Int64Value run_as_user = 3; Int64Value run_as_group = 8; repeated int64 supplemental_groups = 5;
}
message LinuxPodSandboxConfig { string cgroup_parent = 1; LinuxSandboxSecurityContext security_context = 2; }
message PodSandboxConfig {
  PodSandboxMetadata metadata = 1; string hostname = 2; string log_directory = 3; map<string, string> labels = 6;
  map<string, string> annotations = 7; LinuxPodSandboxConfig linux = 8;
}
message RunPodSandboxRequest { PodSandboxConfig config = 1; }
message RunPodSandboxResponse { string pod_sandbox_id = 1; }
message StopPodSandboxRequest { string pod_sandbox_id = 1; }
message StopPodSandboxResponse {}
message RemovePodSandboxRequest { string pod_sandbox_id = 1; }
message RemovePodSandboxResponse {}
enum MountPropagation { PROPAGATION_PRIVATE = 0; PROPAGATION_HOST_TO_CONTAINER = 1; PROPAGATION_BIDIRECTIONAL = 2; }
message Mount {
  string container_path = 1; string host_path = 2; bool readonly = 3; bool selinux_relabel = 4; MountPropagation propagation = 5;
  repeated IDMapping uidMappings = 6; repeated IDMapping gidMappings = 7;
}
message ContainerMetadata { string name = 1; uint32 attempt = 2; }
message ImageSpec { string image = 1; }
message LinuxContainerSecurityContext {
  NamespaceOption namespace_options = 3; Int64Value run_as_user = 5; Int64Value run_as_group = 12; repeated int64 supplemental_groups = 8;
}
message LinuxContainerConfig { LinuxContainerSecurityContext security_context = 2; }
message ContainerConfig {
  ContainerMetadata metadata = 1; ImageSpec image = 2; repeated string command = 3; repeated string args = 4; repeated Mount mounts = 7;
  map<string, string> labels = 9; map<string, string> annotations = 10; string log_path = 11; LinuxContainerConfig linux = 15;
}
message CreateContainerRequest { string pod_sandbox_id = 1; ContainerConfig config = 2; PodSandboxConfig sandbox_config = 3; }
message CreateContainerResponse { string container_id = 1; }
message StartContainerRequest { string container_id = 1; }
message StartContainerResponse {}
message StopContainerRequest { string container_id = 1; int64 timeout = 2; }
message StopContainerResponse {}
message RemoveContainerRequest { string container_id = 1; }
message RemoveContainerResponse {}
enum ContainerState { CONTAINER_CREATED = 0; CONTAINER_RUNNING = 1; CONTAINER_EXITED = 2; CONTAINER_UNKNOWN = 3; }
message Container { string id = 1; string pod_sandbox_id = 2; ContainerMetadata metadata = 3; ContainerState state = 6; }
message ListContainersRequest {}
message ListContainersResponse { repeated Container containers = 1; }
message ExecSyncRequest { string container_id = 1; repeated string cmd = 2; int64 timeout = 3; }
message ExecSyncResponse { bytes stdout = 1; bytes stderr = 2; int32 exit_code = 3; }
message VersionRequest { string version = 1; }
message VersionResponse { string version = 1; string runtime_name = 2; string runtime_version = 3; }
message StatusRequest {}
message RuntimeCondition { string type = 1; bool status = 2; string reason = 3; string message = 4; }
message RuntimeStatus { repeated RuntimeCondition conditions = 1; }
message StatusResponse { RuntimeStatus status = 1; }
`
