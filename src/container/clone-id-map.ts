import * as z from 'zod/mini'
import { quoteValue, Refusal } from '../errors/refusal.ts'
import type { Host } from '../kernel/host.ts'
import {
  composeIdMaps,
  createGroupSwapMap,
  describeIdMapFault,
  HIGHEST_UID_OR_GID,
  type IdMap,
  type IdRange,
  mapToShownId,
} from '../kernel/id-map.ts'
import type { ContainerCloneRequest } from './clone-request.ts'

/**
 * Creates the id map of a clone: the group on disk appears as the requested group, and the pod's ids as the node's. Pure.
 * @param from the group on disk
 * @param to the requested group; undefined: no group is mapped
 * @param pod undefined if the pod has no user namespace
 * @returns undefined if nothing is mapped
 * @throws {Refusal} if the pod's user namespace does not contain the requested group
 */
export function createCloneIdMap(from: number, to: number | undefined, pod: IdMap | undefined): IdMap | undefined {
  const groups = to === undefined || to === from ? undefined : createGroupSwapMap(from, to)
  if (pod === undefined) return groups
  if (to !== undefined && mapToShownId(pod.gids, to) === undefined) {
    const ranges = pod.gids.map(({ disk, count }) => `${disk} to ${disk + count - 1}`).join(', ')
    throw Refusal.of(
      'map-user-namespace',
      `cannot show its group as ${to}: the pod's user namespace has groups ${ranges}`,
      `write one of these, or leave "hostUsers" out`,
    )
  }
  return groups === undefined ? pod : composeIdMaps(groups, pod)
}

const createUserNamespaceMapSchema = () => {
  const id = z.int().check(z.gte(0), z.lte(HIGHEST_UID_OR_GID))
  const ranges = z.array(
    z.object({ hostId: id, containerId: id, length: z.int().check(z.gte(1), z.lte(HIGHEST_UID_OR_GID + 1)) }),
  )
  return z.object({ uidMappings: ranges, gidMappings: ranges })
}

/**
 * Reads the id map of a pod with a user namespace, which kubelet writes before it calls the runtime (kubernetes
 * pkg/kubelet/userns/userns_manager.go). Ids on disk are those of the pod, and the mount shows them as the node's.
 * @returns undefined if the pod has no user namespace
 * @throws {Refusal} if the map cannot be read
 */
export function readPodIdMap(
  { files }: Host,
  { hasUserNamespace, kubeletDir, pod }: Pick<ContainerCloneRequest, 'hasUserNamespace' | 'kubeletDir' | 'pod'>,
): IdMap | undefined {
  if (!hasUserNamespace) return undefined
  const path = `${kubeletDir}/pods/${pod.uid}/userns`
  const text = files.readForeign(path)
  const { data } = createUserNamespaceMapSchema().safeParse(text === undefined ? undefined : tryParseJson(text))
  if (data === undefined)
    throw createIdMapRefusal(path, text === undefined ? 'is not there' : `says ${quoteValue(text)}`)
  const ids = { uids: data.uidMappings.map(convertIdRange), gids: data.gidMappings.map(convertIdRange) }
  const fault = describeIdMapFault(ids)
  if (fault !== undefined) throw createIdMapRefusal(path, `has a mapping that the kernel rejects: ${fault}`)
  return ids
}

function createIdMapRefusal(path: string, reason: string): Refusal {
  return Refusal.of(
    'map-user-namespace',
    `cannot be mapped for the pod's user namespace: kubelet's file ${path} ${reason}`,
    `leave "hostUsers" out, or report this with the version of kubelet`,
  )
}

function convertIdRange({
  hostId,
  containerId,
  length,
}: {
  hostId: number
  containerId: number
  length: number
}): IdRange {
  return { disk: containerId, shown: hostId, count: length }
}

function tryParseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
