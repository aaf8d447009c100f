import type { Handle } from '../host/host.ts'
import { quoted, Refusal } from '../refusal/refusal.ts'
import { HOST_PATH, mayMap } from '../request/map-rule.ts'
import type { Session } from '../store/session.ts'
import { findOtherPaths } from '../volume/other-paths.ts'
import type { CloneRequest, ContainerCloneRequest } from './order.ts'
import { isOfKubelet, type Where } from './source.ts'

/**
 * Asks the rules of `map` for each other path by which one of them names a hostPath, or a part of it. Locations are compared,
 * through every mount of the node.
 * @returns the order, and one more for each of these paths, with what the rules permit for it: all of them must hold
 * @throws {Refusal} for a path that no rule permits
 */
export function ordersByPath(
  session: Session,
  where: Where & Pick<ContainerCloneRequest, 'pod'>,
  order: CloneRequest,
  handle: Handle,
): CloneRequest[] {
  const { source, group } = order
  if (group === undefined || isOfKubelet(where, source)) return [order]
  const { map } = session.config
  const { namespace } = where.pod
  const named = { handle, path: source, kubeletDirectory: where.kubeletDir, rules: map }
  const found = findOtherPaths(session, where.table, named)
  const others = found.map(({ path }): CloneRequest => {
    const grant = mayMap(map, { namespace, kind: HOST_PATH, volume: path, group })
    if ('refusal' in grant) {
      throw new Refusal(
        `shows the content of ${quoted(path)} by another mount, which a rule of "map" names, and the pod must be allowed both: ${grant.refusal}`,
      )
    }
    return { ...order, fsTypes: grant.fsTypes, grants: grant.grants }
  })
  return [order, ...others]
}
