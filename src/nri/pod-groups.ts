import { Client } from '../grpc/client.ts'
import { protobufPackage } from '../grpc/protobuf.ts'

/** Well below the time that a container has (jobs.ts): one that is late has not told. */
const MOST_MS = 500

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

/** The groups of a pod's processes, as kubelet gave them to the runtime. */
export interface ToldGroups {
  /** Of all of them: `supplementalGroups` and `fsGroup` of the pod. */
  readonly certain: readonly number[]
  /** `runAsGroup` of the pod: of those whose container has no `runAsGroup` of its own. */
  readonly perhaps: readonly number[]
}

/** Asks the runtimes; the one that knows the sandbox tells. */
export class PodGroups implements Disposable {
  readonly #sockets: () => readonly string[]
  readonly #withinMs: number
  readonly #clients = new Map<string, Client>()

  /** @param sockets of the runtimes that there are now */
  constructor(sockets: () => readonly string[], withinMs = MOST_MS) {
    this.#sockets = sockets
    this.#withinMs = withinMs
  }

  /** @returns undefined where nobody tells. Never rejects. */
  async of(sandbox: string): Promise<ToldGroups | undefined> {
    for (const socket of this.#sockets()) {
      try {
        const request = { podSandboxId: sandbox, verbose: true }
        const { info } = await this.#client(socket).ask(PodSandboxStatus, request, this.#withinMs)
        const groups = groupsIn(info.info ?? '')
        if (groups !== undefined) return groups
      } catch {
        // Another runtime's, or one that does not answer: it has not told.
      }
    }
    return undefined
  }

  #client(socket: string): Client {
    const known = this.#clients.get(socket)
    if (known !== undefined && !known.isStale) return known
    // A runtime that was started again has another socket.
    known?.[Symbol.dispose]()
    this.#clients.delete(socket)
    const client = new Client(socket)
    this.#clients.set(socket, client)
    return client
  }

  [Symbol.dispose](): void {
    for (const client of this.#clients.values()) client[Symbol.dispose]()
  }
}

interface Told {
  config?: { linux?: { security_context?: { run_as_group?: { value?: unknown }; supplemental_groups?: unknown } } }
}

/**
 * Reads what containerd adds for those who ask for more (containerd internal/cri/server/sandbox_status.go, SandboxInfo): CRI's own
 * PodSandboxConfig. Pure.
 * @returns undefined where it has none, or is something else
 */
export function groupsIn(text: string): ToldGroups | undefined {
  try {
    const context = (JSON.parse(text) as Told | null)?.config?.linux?.security_context
    if (typeof context !== 'object' || context === null) return undefined
    const { run_as_group: own, supplemental_groups: more = [] } = context
    const perhaps = own === undefined || own === null ? [] : [typeof own === 'object' ? (own.value ?? 0) : NaN]
    return areGroups(perhaps) && areGroups(more) ? { certain: more, perhaps } : undefined
  } catch {
    return undefined
  }
}

const areGroups = (told: unknown): told is number[] => Array.isArray(told) && told.every(Number.isSafeInteger)
