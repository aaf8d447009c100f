import { escapeUnprintable } from '../errors/escape.ts'
import { callOnce } from '../grpc/client.ts'
import { protobufPackage } from '../grpc/protobuf.ts'
import { CRI_SOCKETS } from './cri-sockets.ts'

/** Default paths of the runtimes' CRI sockets. */
export const RUNTIME_SOCKETS: readonly string[] = [...CRI_SOCKETS, '/run/crio/crio.sock']

const ANSWER_TIMEOUT_MS = 1000

// kubernetes staging/src/k8s.io/cri-api/pkg/apis/runtime/v1/api.proto
const { method } = protobufPackage('runtime.v1', {
  VersionRequest: { version: [1, 'string'] },
  VersionResponse: { runtimeName: [2, 'string'], runtimeVersion: [3, 'string'] },
} as const)
export const Version = method('RuntimeService/Version', 'VersionRequest', 'VersionResponse')

/** Returns the name and version of the runtime at a CRI socket, such as `containerd v2.1.9`. */
export async function readRuntimeVersion(socket: string): Promise<string | undefined> {
  try {
    const { runtimeName, runtimeVersion } = await callOnce(socket, Version, { version: '' }, ANSWER_TIMEOUT_MS)
    return escapeUnprintable(`${runtimeName} ${runtimeVersion}`)
  } catch {
    return undefined
  }
}
