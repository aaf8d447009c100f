// By Kubernetes' go.mod: 1.20 and 1.21 have gRPC 1.27, 1.22 has 1.38, 1.23 has 1.40.
const GRPC_OF_1_23 = 40

/**
 * Whether the kubelet that calls hands the pod's fsGroup over: those from 1.23 on do. The call itself does not tell, as the pod
 * may have none. Anybody but an older kubelet is taken to.
 * @param client what the call says of its client, as `grpc-go/1.27.1`
 */
export function passesFsGroup(client: string): boolean {
  const minor = /^grpc-go\/1\.(\d+)\./.exec(client)?.[1]
  return minor === undefined || Number(minor) >= GRPC_OF_1_23
}
