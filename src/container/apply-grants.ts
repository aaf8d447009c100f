import { createFault } from '../errors/fault.ts'
import { Refusal } from '../errors/refusal.ts'
import { applyGroupToVolume } from '../fsgroup/apply-to-volume.ts'
import { refuseImmutableRoot, refuseRootWithOtherGroup } from '../fsgroup/refused-root.ts'
import type { Stat } from '../kernel/host.ts'
import { snapshotMountTable } from '../kernel/mount-table/mountinfo.ts'
import { createHandleLocationFinder } from '../kernel/mount-table/tree-location.ts'
import { isEveryDirectoryEntered, type WalkReport } from '../ownership/walk/report.ts'
import type { Session } from '../state/session.ts'
import { resolveVolumeIdentity } from '../state/volume-identity.ts'
import {
  type CloneRequest,
  type ContainerCloneRequest,
  createCloneFault,
  PendingGrantRefusal,
} from './clone-request.ts'
import { openSourceVolume } from './clone-source.ts'
import { GRANT, type GroupGrant, needsGrant } from './group-grant.ts'
import { type PlannedClone, planClones } from './plan-clones.ts'

/** @throws {PendingGrantRefusal} if a volume is still to be walked */
export function refusePendingGrants(planned: readonly PlannedClone[]): void {
  const faults = planned.flatMap(({ request, grant }) =>
    grant === undefined
      ? []
      : [
          createCloneFault(
            request,
            createFault(
              'map-grant',
              `is being walked on disk for group ${grant.group} (annotation modekeep/group-access)`,
              'wait: kubelet tries again, and "modekeep status" on the node shows the progress',
            ),
          ),
        ],
  )
  if (faults.length > 0) throw new PendingGrantRefusal(faults)
}

/**
 * Walks the volumes of a container for which that is requested and not done, one after the other. A volume that the container
 * mounts with several groups gets the first of them.
 */
export async function applyPendingGrants(session: Session, request: ContainerCloneRequest): Promise<void> {
  const walked = new Set<string>()
  for (const { request: clone, grant, failures } of await planGrants(session, request)) {
    if (failures !== undefined && !request.isOptional)
      throw new Refusal(failures.map((fault) => createCloneFault(clone, fault)))
    if (grant === undefined || walked.has(grant.identity)) continue
    walked.add(grant.identity)
    try {
      await applyGrant(session, request, clone, grant)
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
      throw new Refusal(
        error.faults.map((fault) => createCloneFault(clone, fault)),
        { cause: error },
      )
    }
  }
}

/** @throws {Refusal} whose message the caller prefixes with the volume */
async function applyGrant(
  session: Session,
  request: ContainerCloneRequest,
  { source }: CloneRequest,
  { identity, group }: GroupGrant,
): Promise<void> {
  const { namespace, name } = request.pod
  const { inodes } = session.host
  const table = snapshotMountTable(session.host)
  const context = { ...request, table, locationOf: createHandleLocationFinder(session.host, table) }
  using handles = new DisposableStack()
  const { root, path } = openSourceVolume(session, context, source, handles)
  if (resolveVolumeIdentity(session, root, inodes.stat(root)) !== identity)
    throw Refusal.of('map-sub-path', 'is another volume now', 'kubelet tries again')
  const fsGroup = { groupId: group, ...GRANT }
  const applied = await applyGroupToVolume(session, root, fsGroup, {
    volume: identity,
    source: path,
    pod: `${namespace}/${name}`,
    restoreOnUnmount: false,
    confirm() {
      // The lock may have been held by a walk for another group, such as an operator's.
      if (!needsGrant(session, root, group, identity))
        throw Refusal.of('map-sub-path', 'was walked by another call meanwhile', 'kubelet tries again')
      refuseImmutableRoot(path, inodes.stat(root), fsGroup)
    },
  })
  using _ = applied.lock
  refuseUnfinishedGrant(path, inodes.stat(root), group, applied.report)
}

/** Refuses a result that has the next attempt request the same walk, so that the pod gets the reason. */
function refuseUnfinishedGrant(path: string, root: Stat, group: number, report: WalkReport | undefined): void {
  if (report?.root !== 'changed since by its user') refuseRootWithOtherGroup(path, root, group, report?.root)
  if (report === undefined || isEveryDirectoryEntered(report)) return
  throw Refusal.of(
    'map-grant',
    `was walked at ${path} while directories were moved in it, so that some may not have group ${group}`,
    'kubelet tries again: stop the processes that move directories there',
  )
}

/** Plans without keeping clones of the volumes' mounts, which would outlive an unmount by the driver. */
async function planGrants(session: Session, request: ContainerCloneRequest): Promise<PlannedClone[]> {
  using handles = new DisposableStack()
  return await planClones(session, request, handles, () => {})
}
