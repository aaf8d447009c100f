import * as z from 'zod/mini'
import type { Host } from '../host/host.ts'
import { HIGHEST_ID, type IdMap, type IdRange, mapFault } from '../host/id-map.ts'
import { quoted, Refusal } from '../refusal/refusal.ts'
import type { ContainerCloneRequest } from './order.ts'

const schema = () => {
  const id = z.int().check(z.gte(0), z.lte(HIGHEST_ID))
  const ranges = z.array(
    z.object({ hostId: id, containerId: id, length: z.int().check(z.gte(1), z.lte(HIGHEST_ID + 1)) }),
  )
  return z.object({ uidMappings: ranges, gidMappings: ranges })
}

/**
 * The ids of a pod with a user namespace, as kubelet wrote them before it called the runtime (kubernetes
 * pkg/kubelet/userns/userns_manager.go): what a volume stores is an id of the pod, and shows as the node's.
 * @returns undefined where the pod has the node's
 * @throws {Refusal} where that cannot be read
 */
export function podIds(
  { files }: Host,
  { hasUserNamespace, kubeletDir, pod }: Pick<ContainerCloneRequest, 'hasUserNamespace' | 'kubeletDir' | 'pod'>,
): IdMap | undefined {
  if (!hasUserNamespace) return undefined
  const path = `${kubeletDir}/pods/${pod.uid}/userns`
  const text = files.readForeign(path)
  const { data } = schema().safeParse(text === undefined ? undefined : parsed(text))
  if (data === undefined) throw unusable(path, text === undefined ? 'is not there' : `says ${quoted(text)}`)
  const ids = { uids: data.uidMappings.map(rangeOf), gids: data.gidMappings.map(rangeOf) }
  const fault = mapFault(ids)
  if (fault !== undefined) throw unusable(path, `has a mapping that the kernel rejects: ${fault}`)
  return ids
}

function unusable(path: string, what: string): Refusal {
  return new Refusal(
    `cannot be mapped for the pod's user namespace: kubelet's file ${path} ${what}: leave "hostUsers" out, or report this with the version of kubelet`,
  )
}

function rangeOf({ hostId, containerId, length }: { hostId: number; containerId: number; length: number }): IdRange {
  return { disk: containerId, shown: hostId, count: length }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
