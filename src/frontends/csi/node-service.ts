import type * as grpc from '@grpc/grpc-js'
import { CSI_TERMS } from '../../errors/fault.ts'
import { formatError, Refusal } from '../../errors/refusal.ts'
import type { SpaceUsage } from '../../kernel/inodes.ts'
import { createUnaryCallHandlers } from '../../rpc/server.ts'
import { createFailureMessage, truncateEventMessage } from '../flexvolume/protocol.ts'
import type { CsiIdentityService, CsiMessage, CsiNodeService } from './messages.ts'
import type { PodInfoOnMountGuard } from './pod-info.ts'
import type { VolumePublicationQueue } from './publication-queue.ts'
import { parsePublishRequest } from './publish-request.ts'
import { parseStatsVolumePath, parseTargetPath, refuseTargetOutsidePods } from './target-path.ts'
import { CsiCallFailure, type CsiTask, type CsiTaskOutcome, type VolumeStats } from './worker-tasks.ts'

/** Identity of the driver on this node. */
export interface CsiDriverSettings {
  /** Name of the driver in pods' volumes and of the CSIDriver object. */
  readonly name: string
  readonly version: string
  readonly nodeId: string
  /** Kubelet's root directory: --root-dir. */
  readonly directory: string
}

// csi.proto: NodeServiceCapability.RPC.Type
const GET_VOLUME_STATS_CAPABILITY = 2
const VOLUME_CONDITION_CAPABILITY = 4
const SINGLE_NODE_MULTI_WRITER_CAPABILITY = 5
/** Kubelet passes the pod's fsGroup to the driver, and does not change the volume's group itself. */
const VOLUME_MOUNT_GROUP_CAPABILITY = 6

// csi.proto: VolumeUsage.Unit
const USAGE_UNIT_BYTES = 1
const USAGE_UNIT_INODES = 2

/** Kubelet waits for two minutes. */
const MAX_CSI_ANSWER_MS = 100_000
/** Part of the caller's deadline that is reserved for the answer's way back. */
const ANSWER_TRANSFER_RESERVE_MS = 2000

/** Calculates when a call must be answered, in performance.now()'s milliseconds. @param deadline the caller's */
export function calculateAnswerDeadline(deadline: Date | number): number {
  const remainingMs = Number(deadline) - Date.now()
  const answerMs = remainingMs - Math.min(ANSWER_TRANSFER_RESERVE_MS, remainingMs / 4)
  return performance.now() + Math.max(0, Math.min(MAX_CSI_ANSWER_MS, answerMs))
}

// Kubernetes 1.20 and 1.21 use gRPC 1.27, 1.22 uses 1.38, 1.23 uses 1.40 (go.mod).
const KUBELET_1_23_GRPC_MINOR = 40

/**
 * Returns whether the calling kubelet passes the pod's fsGroup, as those from 1.23 do. The call itself does not show it,
 * because the pod may have no fsGroup. Other clients count as newer kubelets.
 * @param client the call's user agent, such as `grpc-go/1.27.1`
 */
export function kubeletPassesFsGroup(client: string): boolean {
  const minor = /^grpc-go\/1\.(\d+)\./.exec(client)?.[1]
  return minor === undefined || Number(minor) >= KUBELET_1_23_GRPC_MINOR
}

/** Creates the handlers of the CSI socket. Workers access the volumes; this process never does. */
export function createCsiServiceHandlers(
  { name, version, nodeId, directory: kubeletDirectory }: CsiDriverSettings,
  queue: VolumePublicationQueue,
  podInfo: Pick<PodInfoOnMountGuard, 'assertConfirmed'>,
  refused: Parameters<typeof createUnaryCallHandlers>[0],
): grpc.UntypedServiceImplementation {
  const types = [
    GET_VOLUME_STATS_CAPABILITY,
    VOLUME_CONDITION_CAPABILITY,
    SINGLE_NODE_MULTI_WRITER_CAPABILITY,
    VOLUME_MOUNT_GROUP_CAPABILITY,
  ]
  const capabilities = types.map((type) => ({ rpc: { type } }))

  async function runTask(
    task: CsiTask,
    namespace: string,
    until: number,
  ): Promise<Exclude<CsiTaskOutcome, { failure: object }>> {
    const outcome = await queue.answer(task, namespace, until)
    if (outcome.failure !== undefined) throw new CsiCallFailure(outcome.failure.code, outcome.failure.message)
    return outcome
  }

  return createUnaryCallHandlers<typeof CsiIdentityService & typeof CsiNodeService>(
    refused,
    {
      GetPluginInfo: () => ({ name, vendorVersion: version }),
      GetPluginCapabilities: () => ({}),
      Probe: () => ({ ready: { value: true } }),
      NodeGetCapabilities: () => ({ capabilities }),
      NodeGetInfo: () => ({ nodeId, maxVolumesPerNode: 0n }),
      async NodePublishVolume(request, { deadline, client }) {
        const until = calculateAnswerDeadline(deadline)
        const { namespace, ...publication } = parsePublishRequest(request, kubeletPassesFsGroup(client))
        await refuseTargetOutsidePods(kubeletDirectory, publication.directory)
        await podInfo.assertConfirmed()
        await runTask({ do: 'publish', ...publication }, namespace, until)
        return {}
      },
      async NodeUnpublishVolume({ volumeId, targetPath }, { deadline }) {
        const directory = parseTargetPath(volumeId, targetPath)
        await runTask({ do: 'unpublish', volumeId, directory, driver: name }, '', calculateAnswerDeadline(deadline))
        return {}
      },
      async NodeGetVolumeStats({ volumeId, volumePath }, { deadline }) {
        const directory = parseStatsVolumePath(volumeId, volumePath)
        const { stats } = await runTask({ do: 'stats', volumeId, directory }, '', calculateAnswerDeadline(deadline))
        if (stats === undefined) throw new Error('the worker has returned no usage')
        return formatVolumeStats(stats)
      },
    },
    convertErrorToGrpcStatus,
  )
}

const ZERO_SPACE_USAGE = { total: '0', used: '0', available: '0' }

/** Formats the answer to kubelet: the usage, and a condition that is abnormal if the volume has a fault. */
export function formatVolumeStats({ space, trouble }: VolumeStats): CsiMessage<'NodeGetVolumeStatsResponse'> {
  const formatUsage = (unit: number, { total, used, available }: Record<keyof SpaceUsage, string>) => ({
    total: BigInt(total),
    used: BigInt(used),
    available: BigInt(available),
    unit,
  })
  return {
    // Older kubelets discard a condition that comes without a usage.
    usage:
      space === undefined
        ? [formatUsage(USAGE_UNIT_BYTES, ZERO_SPACE_USAGE)]
        : [formatUsage(USAGE_UNIT_BYTES, space.bytes), formatUsage(USAGE_UNIT_INODES, space.inodes)],
    volumeCondition: { abnormal: trouble !== '', message: trouble },
  }
}

function convertErrorToGrpcStatus(error: unknown) {
  if (error instanceof CsiCallFailure) return error
  if (!(error instanceof Refusal))
    return { code: 'INTERNAL' as const, message: truncateEventMessage(formatError(error)) }
  return { code: 'INVALID_ARGUMENT' as const, message: createFailureMessage(error, CSI_TERMS) }
}
