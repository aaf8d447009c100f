import { quoted, Refusal } from '../errors/refusal.ts'
import type { Handle } from '../host/host.ts'
import { findMapGrant, HOST_PATH } from '../request/map-rule.ts'
import type { Session } from '../store/session.ts'
import { findOtherPaths } from '../volume/other-paths.ts'
import type { CloneRequest, ContainerCloneRequest } from './clone-request.ts'
import { isPodVolumePath, type SourceContext } from './clone-source.ts'

/**
 * Checks the rules of `map` for each other path by which a rule names a hostPath or a part of it. Locations are compared
 * through every mount of the node.
 * @returns the request, and one more for each of these paths with its grants; all of them must allow the clone
 * @throws {Refusal} for a path that no rule permits
 */
export function createRequestPerPath(
  session: Session,
  context: SourceContext & Pick<ContainerCloneRequest, 'pod'>,
  request: CloneRequest,
  handle: Handle,
): CloneRequest[] {
  const { source, group } = request
  if (group === undefined || isPodVolumePath(context, source)) return [request]
  const { map } = session.config
  const { namespace } = context.pod
  const hostPath = { handle, path: source, kubeletDirectory: context.kubeletDir, rules: map }
  const otherPaths = findOtherPaths(session, context.table, hostPath)
  const requests = otherPaths.map(({ path }): CloneRequest => {
    const grant = findMapGrant(map, { namespace, kind: HOST_PATH, volume: path, group })
    if ('refusal' in grant) {
      throw new Refusal(
        `shows the content of ${quoted(path)} by another mount, which a rule of "map" names, and the pod must be allowed both: ${grant.refusal}`,
      )
    }
    return { ...request, fsTypes: grant.fsTypes, grants: grant.grants }
  })
  return [request, ...requests]
}
