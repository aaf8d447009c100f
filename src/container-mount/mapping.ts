import { composed, type IdMap, shownAs, swapping } from '../host/id-map.ts'
import { Refusal } from '../refusal/refusal.ts'

/**
 * How a clone is to show ids: the group on disk as the one asked for, and the pod's ids as the node's. Pure.
 * @param from the group on disk
 * @param to undefined: no group is shown as another
 * @param pod undefined: the pod has the node's ids
 * @returns undefined where nothing is to be mapped
 * @throws {Refusal} where the pod has no such group
 */
export function mappingFor(from: number, to: number | undefined, pod: IdMap | undefined): IdMap | undefined {
  const groups = to === undefined || to === from ? undefined : swapping(from, to)
  if (pod === undefined) return groups
  if (to !== undefined && shownAs(pod.gids, to) === undefined) {
    const ranges = pod.gids.map(({ disk, count }) => `${disk} to ${disk + count - 1}`).join(', ')
    throw new Refusal(
      `cannot show its group as ${to}: the pod's user namespace has groups ${ranges}: write one of these, or leave "hostUsers" out`,
    )
  }
  return groups === undefined ? pod : composed(groups, pod)
}
