import { ListPodSandboxMethod, PodSandboxStatusMethod } from '../../../src/frontends/nri/cri.ts'
import { createUnaryCallHandlers, type GrpcSocketServer, listenOnGrpcSocket } from '../../../src/rpc/server.ts'

const SERVICES = { ListPodSandbox: ListPodSandboxMethod, PodSandboxStatus: PodSandboxStatusMethod }

/** Nanoseconds since 1970: when its sandboxes were created. */
export const CREATED_AT = 1_700_000_000_123_000_000n

/** What containerd adds of a sandbox for those who ask for more: CRI's PodSandboxConfig with the pod's groups. */
export function infoWith(groups: readonly number[]): string {
  return JSON.stringify({
    pid: 7,
    config: { metadata: { uid: 'u' }, linux: { security_context: { supplemental_groups: groups } } },
  })
}

/** Answers CRI as a runtime that has a sandbox, or several. */
export function criRuntime(socket: string, sandboxes: RegExp, info: string): Promise<GrpcSocketServer> {
  const answers = createUnaryCallHandlers<typeof SERVICES>(() => {}, {
    ListPodSandbox: () => ({ items: [{ id: sandboxes.source, state: 0, createdAt: CREATED_AT }] }),
    PodSandboxStatus({ podSandboxId, verbose }) {
      if (!sandboxes.test(podSandboxId)) throw new Error('not found')
      return { info: verbose ? { info } : {} }
    },
  })
  return listenOnGrpcSocket(socket, SERVICES, answers)
}
