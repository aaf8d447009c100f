import { escapeUnprintable } from '../../errors/escape.ts'
import { callGrpcMethodOnce, GrpcClient } from '../../rpc/client.ts'
import { createProtobufPackage } from '../../rpc/protobuf.ts'

/** Paths of containerd's CRI socket: of its packages, of k3s and of MicroK8s. CRI-O does not report a pod's groups. */
export const CONTAINERD_SOCKET_PATHS: readonly string[] = [
  '/run/containerd/containerd.sock',
  '/run/k3s/containerd/containerd.sock',
  '/var/snap/microk8s/common/run/containerd.sock',
]

/** Default paths of the runtimes' CRI sockets. */
export const RUNTIME_SOCKET_PATHS: readonly string[] = [...CONTAINERD_SOCKET_PATHS, '/run/crio/crio.sock']

/** Well below the time limit of a container (worker-tasks.ts). The groups of a slow runtime count as unknown. */
const SANDBOX_GROUPS_TIMEOUT_MS = 500
const SANDBOX_LIST_TIMEOUT_MS = 5000
const RUNTIME_VERSION_TIMEOUT_MS = 1000

// kubernetes staging/src/k8s.io/cri-api/pkg/apis/runtime/v1/api.proto
const { method } = createProtobufPackage('runtime.v1', {
  PodSandboxStatusRequest: { podSandboxId: [1, 'string'], verbose: [2, 'bool'] },
  PodSandboxStatusResponse: { info: [2, 'string', 'map'] },
  ListPodSandboxRequest: {},
  PodSandbox: { id: [1, 'string'], state: [3, 'int32'], createdAt: [4, 'int64'] },
  ListPodSandboxResponse: { items: [1, 'PodSandbox', 'repeated'] },
  VersionRequest: { version: [1, 'string'] },
  VersionResponse: { runtimeName: [2, 'string'], runtimeVersion: [3, 'string'] },
} as const)
export const PodSandboxStatusMethod = method(
  'RuntimeService/PodSandboxStatus',
  'PodSandboxStatusRequest',
  'PodSandboxStatusResponse',
)
export const ListPodSandboxMethod = method(
  'RuntimeService/ListPodSandbox',
  'ListPodSandboxRequest',
  'ListPodSandboxResponse',
)
export const RuntimeVersionMethod = method('RuntimeService/Version', 'VersionRequest', 'VersionResponse')

/** Groups of a pod's processes, as kubelet passed them to the runtime. */
export interface PodProcessGids {
  /** Groups of every process: `supplementalGroups` and `fsGroup` of the pod. */
  readonly certain: readonly number[]
  /** `runAsGroup` of the pod, which a container's own `runAsGroup` overrides. */
  readonly possible: readonly number[]
}

/** A pod's sandbox in a runtime's list. */
export interface ListedSandbox {
  readonly id: string
  /** Its containers can run. A runtime may send no event about a sandbox that failed to start. */
  readonly isReady: boolean
  /** Milliseconds since 1970. */
  readonly createdAtMs: number
}

// api.proto: PodSandboxState
const SANDBOX_READY = 0

const parseSandbox = ({ id, state, createdAt }: { id: string; state: number; createdAt: bigint }): ListedSandbox => ({
  id,
  isReady: state === SANDBOX_READY,
  createdAtMs: Number(createdAt / 1_000_000n),
})

/** Reads pods' sandboxes from the runtimes of the node. Its methods never reject. */
export class SandboxReader implements Disposable {
  readonly #sockets: () => readonly string[]
  readonly #clients = new Map<string, GrpcClient>()

  /** @param sockets lists the CRI sockets that exist now */
  constructor(sockets: () => readonly string[]) {
    this.#sockets = sockets
  }

  /** Requests a sandbox's groups from each runtime, until one has the sandbox. @returns undefined if none reports them */
  async readGroups(sandbox: string, timeoutMs = SANDBOX_GROUPS_TIMEOUT_MS): Promise<PodProcessGids | undefined> {
    for (const socket of this.#sockets()) {
      try {
        const request = { podSandboxId: sandbox, verbose: true }
        const { info } = await this.#client(socket).call(PodSandboxStatusMethod, request, timeoutMs)
        const groups = parsePodProcessGids(info.info ?? '')
        if (groups !== undefined) return groups
      } catch {
        // The sandbox is another runtime's, or this one does not respond.
      }
    }
    return undefined
  }

  /** Lists the sandboxes of each runtime that responds. */
  async list(): Promise<ListedSandbox[][]> {
    const lists: ListedSandbox[][] = []
    for (const socket of this.#sockets()) {
      try {
        const { items } = await this.#client(socket).call(ListPodSandboxMethod, {}, SANDBOX_LIST_TIMEOUT_MS)
        lists.push(items.map(parseSandbox))
      } catch {
        // Not a CRI socket, or its runtime does not respond.
      }
    }
    return lists
  }

  #client(socket: string): GrpcClient {
    const existing = this.#clients.get(socket)
    if (existing !== undefined && !existing.isStale) return existing
    // A restarted runtime has another socket at the same path.
    existing?.[Symbol.dispose]()
    this.#clients.delete(socket)
    const client = new GrpcClient(socket)
    this.#clients.set(socket, client)
    return client
  }

  [Symbol.dispose](): void {
    for (const client of this.#clients.values()) client[Symbol.dispose]()
  }
}

interface VerboseSandboxInfo {
  config?: { linux?: { security_context?: { run_as_group?: { value?: unknown }; supplemental_groups?: unknown } } }
}

/**
 * Parses the JSON that containerd adds to a verbose status (internal/cri/server/sandbox_status.go, SandboxInfo). It contains
 * CRI's PodSandboxConfig.
 * @returns undefined if the text has no such groups
 */
export function parsePodProcessGids(text: string): PodProcessGids | undefined {
  try {
    const context = (JSON.parse(text) as VerboseSandboxInfo | null)?.config?.linux?.security_context
    if (typeof context !== 'object' || context === null) return undefined
    const { run_as_group: primary, supplemental_groups: certain = [] } = context
    const possible =
      primary === undefined || primary === null ? [] : [typeof primary === 'object' ? (primary.value ?? 0) : NaN]
    return isGroupIdList(possible) && isGroupIdList(certain) ? { certain, possible } : undefined
  } catch {
    return undefined
  }
}

const isGroupIdList = (value: unknown): value is number[] => Array.isArray(value) && value.every(Number.isSafeInteger)

/** Returns the name and version of the runtime at a CRI socket, such as `containerd v2.1.9`. */
export async function readRuntimeVersion(socket: string): Promise<string | undefined> {
  try {
    const { runtimeName, runtimeVersion } = await callGrpcMethodOnce(
      socket,
      RuntimeVersionMethod,
      { version: '' },
      RUNTIME_VERSION_TIMEOUT_MS,
    )
    return escapeUnprintable(`${runtimeName} ${runtimeVersion}`)
  } catch {
    return undefined
  }
}
