import { Refusal } from '../errors/refusal.ts'
import { composeMaps, createSwapMap, type IdMap, mapToShownId } from '../host/id-map.ts'

/**
 * Creates the id map of a clone: the group on disk appears as the requested group, and the pod's ids as the node's. Pure.
 * @param from the group on disk
 * @param to the requested group; undefined: no group is mapped
 * @param pod undefined if the pod has no user namespace
 * @returns undefined if nothing is mapped
 * @throws {Refusal} if the pod's user namespace does not contain the requested group
 */
export function createCloneIdMap(from: number, to: number | undefined, pod: IdMap | undefined): IdMap | undefined {
  const groups = to === undefined || to === from ? undefined : createSwapMap(from, to)
  if (pod === undefined) return groups
  if (to !== undefined && mapToShownId(pod.gids, to) === undefined) {
    const ranges = pod.gids.map(({ disk, count }) => `${disk} to ${disk + count - 1}`).join(', ')
    throw new Refusal(
      `cannot show its group as ${to}: the pod's user namespace has groups ${ranges}: write one of these, or leave "hostUsers" out`,
    )
  }
  return groups === undefined ? pod : composeMaps(groups, pod)
}
