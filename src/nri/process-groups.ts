import { GrpcClient } from '../grpc/client.ts'
import { protobufPackage } from '../grpc/protobuf.ts'

/** Well below the time limit of a container (worker-tasks.ts). The groups of a slow runtime count as unknown. */
const ANSWER_TIMEOUT_MS = 500

// kubernetes staging/src/k8s.io/cri-api/pkg/apis/runtime/v1/api.proto
const { method } = protobufPackage('runtime.v1', {
  PodSandboxStatusRequest: { podSandboxId: [1, 'string'], verbose: [2, 'bool'] },
  PodSandboxStatusResponse: { info: [2, 'string', 'map'] },
} as const)
export const PodSandboxStatus = method(
  'RuntimeService/PodSandboxStatus',
  'PodSandboxStatusRequest',
  'PodSandboxStatusResponse',
)

/** Groups of a pod's processes, as kubelet passed them to the runtime. */
export interface ProcessGroups {
  /** Groups of every process: `supplementalGroups` and `fsGroup` of the pod. */
  readonly certain: readonly number[]
  /** `runAsGroup` of the pod, which a container's own `runAsGroup` overrides. */
  readonly possible: readonly number[]
}

/** Requests a sandbox's groups from each runtime of the node, until one of them has the sandbox. */
export class ProcessGroupReader implements Disposable {
  readonly #sockets: () => readonly string[]
  readonly #timeoutMs: number
  readonly #clients = new Map<string, GrpcClient>()

  /** @param sockets lists the CRI sockets that exist now */
  constructor(sockets: () => readonly string[], timeoutMs = ANSWER_TIMEOUT_MS) {
    this.#sockets = sockets
    this.#timeoutMs = timeoutMs
  }

  /** @returns undefined if no runtime reports the groups. Never rejects. */
  async read(sandbox: string): Promise<ProcessGroups | undefined> {
    for (const socket of this.#sockets()) {
      try {
        const request = { podSandboxId: sandbox, verbose: true }
        const { info } = await this.#client(socket).call(PodSandboxStatus, request, this.#timeoutMs)
        const groups = parseProcessGroups(info.info ?? '')
        if (groups !== undefined) return groups
      } catch {
        // The sandbox is another runtime's, or this one does not respond.
      }
    }
    return undefined
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

interface SandboxInfo {
  config?: { linux?: { security_context?: { run_as_group?: { value?: unknown }; supplemental_groups?: unknown } } }
}

/**
 * Parses the JSON that containerd adds to a verbose status (internal/cri/server/sandbox_status.go, SandboxInfo). It contains
 * CRI's PodSandboxConfig.
 * @returns undefined if the text has no such groups
 */
export function parseProcessGroups(text: string): ProcessGroups | undefined {
  try {
    const context = (JSON.parse(text) as SandboxInfo | null)?.config?.linux?.security_context
    if (typeof context !== 'object' || context === null) return undefined
    const { run_as_group: primary, supplemental_groups: certain = [] } = context
    const possible =
      primary === undefined || primary === null ? [] : [typeof primary === 'object' ? (primary.value ?? 0) : NaN]
    return isGroupList(possible) && isGroupList(certain) ? { certain, possible } : undefined
  } catch {
    return undefined
  }
}

const isGroupList = (value: unknown): value is number[] => Array.isArray(value) && value.every(Number.isSafeInteger)
