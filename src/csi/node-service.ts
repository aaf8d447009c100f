import * as grpc from '@grpc/grpc-js'
import { truncateMessage } from '../flexvolume/reply.ts'
import type { Space } from '../host/inodes.ts'
import { messageOf, Refusal } from '../refusal/refusal.ts'
import type { Content, Identity, Node } from './messages.ts'
import { passesFsGroup } from './older-kubelet.ts'
import type { PodInfoGuard } from './pod-info.ts'
import type { PublicationQueue } from './publication-queue.ts'
import { parsePublishRequest, parseStatsTarget, parseTarget, refuseOutsidePods } from './publish-request.ts'
import { CallFailure, type CsiTask, type CsiTaskOutcome, type VolumeStats } from './worker-tasks.ts'

/** Who answers. */
export interface DriverSettings {
  /** As a pod's volume and the CSIDriver object name it. */
  readonly name: string
  readonly version: string
  readonly nodeId: string
  /** Kubelet's root directory: --root-dir. */
  readonly directory: string
}

export interface CallEvents {
  refused(method: string, code: string, message: string): void
}

// csi.proto: NodeServiceCapability.RPC.Type
const GET_VOLUME_STATS = 2
const VOLUME_CONDITION = 4
const SINGLE_NODE_MULTI_WRITER = 5
/** Kubelet hands the pod's fsGroup over, and does not walk itself. */
const VOLUME_MOUNT_GROUP = 6

// csi.proto: VolumeUsage.Unit
const BYTES = 1
const INODES = 2

/** In ms. Kubelet waits for two minutes. */
const MAX_ANSWER_MS = 100_000
/** Of what a caller gives for an answer, for its way back. */
const MAX_RETURN_MS = 2000

/** In performance.now()'s ms, when a call is to be answered at the latest. @param deadline the caller's */
export function calculateAnswerTime(deadline: Date | number): number {
  const left = Number(deadline) - Date.now()
  return performance.now() + Math.max(0, Math.min(MAX_ANSWER_MS, left - Math.min(MAX_RETURN_MS, left / 4)))
}

/** What answers on the CSI socket. No call does anything to a volume in this process. */
export function createNodeHandlers(
  { name, version, nodeId, directory: kubeletDirectory }: DriverSettings,
  publications: PublicationQueue,
  podInfo: Pick<PodInfoGuard, 'assertConfirmed'>,
  events: CallEvents,
): grpc.UntypedServiceImplementation {
  const types = [GET_VOLUME_STATS, VOLUME_CONDITION, SINGLE_NODE_MULTI_WRITER, VOLUME_MOUNT_GROUP]
  const capabilities = types.map((type) => ({ rpc: { type } }))

  async function runTask(
    job: CsiTask,
    namespace: string,
    until: number,
  ): Promise<Exclude<CsiTaskOutcome, { failure: object }>> {
    const outcome = await publications.answer(job, namespace, until)
    if (outcome.failure !== undefined) throw new CallFailure(outcome.failure.code, outcome.failure.message)
    return outcome
  }

  return createHandlers<typeof Identity & typeof Node>(events, {
    GetPluginInfo: () => ({ name, vendorVersion: version }),
    GetPluginCapabilities: () => ({}),
    Probe: () => ({ ready: { value: true } }),
    NodeGetCapabilities: () => ({ capabilities }),
    NodeGetInfo: () => ({ nodeId, maxVolumesPerNode: 0n }),
    async NodePublishVolume(request, until, client) {
      const { namespace, ...asked } = parsePublishRequest(request, passesFsGroup(client))
      await refuseOutsidePods(kubeletDirectory, asked.directory)
      await podInfo.assertConfirmed()
      await runTask({ do: 'publish', ...asked }, namespace, until)
      return {}
    },
    async NodeUnpublishVolume({ volumeId, targetPath }, until) {
      const directory = parseTarget(volumeId, targetPath)
      await runTask({ do: 'unpublish', volumeId, directory, driver: name }, '', until)
      return {}
    },
    async NodeGetVolumeStats({ volumeId, volumePath }, until) {
      const directory = parseStatsTarget(volumeId, volumePath)
      const { stats } = await runTask({ do: 'stats', volumeId, directory }, '', until)
      if (stats === undefined) throw new Error('a look has told nothing')
      return formatStats(stats)
    },
  })
}

const NO_SPACE = { total: '0', used: '0', available: '0' }

/** Formats the answer to kubelet: the usage, and a condition that is abnormal if the volume has a fault. */
export function formatStats({ space, trouble }: VolumeStats): Content<'NodeGetVolumeStatsResponse'> {
  const usage = (unit: number, { total, used, available }: Record<keyof Space, string>) => ({
    total: BigInt(total),
    used: BigInt(used),
    available: BigInt(available),
    unit,
  })
  return {
    // Older kubelets discard a condition that comes without a usage.
    usage: space === undefined ? [usage(BYTES, NO_SPACE)] : [usage(BYTES, space.bytes), usage(INODES, space.inodes)],
    volumeCondition: { abnormal: trouble !== '', message: trouble },
  }
}

type MethodReplies<S> = {
  [N in keyof S]: S[N] extends grpc.MethodDefinition<infer I, infer O>
    ? (request: I, until: number, client: string) => O | Promise<O>
    : never
}

/** A caller that goes away changes nothing: what was begun goes on, and it will ask again. */
function createHandlers<S extends grpc.ServiceDefinition>(
  { refused }: CallEvents,
  replies: MethodReplies<S>,
): grpc.UntypedServiceImplementation {
  const handler = (
    name: string,
    reply: (request: unknown, until: number, client: string) => unknown,
  ): grpc.handleUnaryCall<unknown, unknown> => {
    return async (call, answer) => {
      try {
        const client = String(call.metadata.get('user-agent')[0] ?? '')
        answer(null, await reply(call.request, calculateAnswerTime(call.getDeadline()), client))
      } catch (error) {
        const { code, message } = convertError(error)
        refused(name, code, message)
        answer({ code: grpc.status[code], message })
      }
    }
  }
  return Object.fromEntries(Object.entries(replies).map(([name, reply]) => [name, handler(name, reply)]))
}

function convertError(error: unknown) {
  if (error instanceof CallFailure) return error
  const code = error instanceof Refusal ? ('INVALID_ARGUMENT' as const) : ('INTERNAL' as const)
  return { code, message: truncateMessage(messageOf(error)) }
}
