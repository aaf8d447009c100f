import protobuf from 'protobufjs'

/** The messages by the numbers of containerd/nri's api.proto, more of them than the plugin reads, and ttrpc's. */
const { root } = protobuf.parse(`
  syntax = "proto3";
  message Status { int32 code = 1; string message = 2; }
  message KeyValue { string key = 1; string value = 2; }
  message Request { string service = 1; string method = 2; bytes payload = 3; int64 timeout_nano = 4; repeated KeyValue metadata = 5; }
  message Response { Status status = 1; bytes payload = 2; }
  message Empty {}
  message RegisterPluginRequest { string plugin_name = 1; string plugin_idx = 2; string NRI_version = 3; }
  message ConfigureRequest { string config = 1; string runtime_name = 2; string runtime_version = 3;
    int64 registration_timeout = 4; int64 request_timeout = 5; string NRI_version = 6; }
  message ConfigureResponse { int32 events = 2; }
  message PodSandbox { string id = 1; string name = 2; string uid = 3; string namespace = 4; map<string, string> labels = 5;
    map<string, string> annotations = 6; string runtime_handler = 7; uint32 pid = 9; repeated string ips = 10; }
  message Mount { string destination = 1; string type = 2; string source = 3; repeated string options = 4; }
  message LinuxNamespace { string type = 1; string path = 2; }
  message LinuxContainer { repeated LinuxNamespace namespaces = 1; string cgroups_path = 5; }
  message User { uint32 uid = 1; uint32 gid = 2; repeated uint32 additional_gids = 3; }
  message Container { string id = 1; string pod_sandbox_id = 2; string name = 3; int32 state = 4; map<string, string> labels = 5;
    map<string, string> annotations = 6; repeated string args = 7; repeated string env = 8; repeated Mount mounts = 9;
    LinuxContainer linux = 11; uint32 pid = 12; User user = 21; }
  message SynchronizeRequest { repeated PodSandbox pods = 1; repeated Container containers = 2; bool more = 3; }
  message SynchronizeResponse { bool more = 2; }
  message ContainerAdjustment { map<string, string> annotations = 2; repeated Mount mounts = 3; }
  message CreateContainerResponse { ContainerAdjustment adjust = 1; }
  message ContainerRequest { PodSandbox pod = 1; Container container = 2; }
  message StateChangeEvent { int32 event = 1; PodSandbox pod = 2; Container container = 3; }
`)

export function encode(name: string, value: object): Buffer {
  const type = root.lookupType(name)
  return Buffer.from(type.encode(type.fromObject(value)).finish())
}

// biome-ignore lint/suspicious/noExplicitAny: a test reads what it knows
export function decode(name: string, bytes: Uint8Array): any {
  const type = root.lookupType(name)
  return type.toObject(type.decode(bytes), { arrays: true, objects: true, defaults: true, longs: Number })
}
