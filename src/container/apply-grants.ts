import { createFault } from '../errors/fault.ts'
import { Refusal } from '../errors/refusal.ts'
import { applyGroupToVolume } from '../fsgroup/apply-to-volume.ts'
import { snapshotMountTable } from '../kernel/mount-table/mountinfo.ts'
import { createHandleLocationFinder } from '../kernel/mount-table/tree-location.ts'
import type { Session } from '../state/session.ts'
import { resolveVolumeIdentity } from '../state/volume-identity.ts'
import { type ContainerCloneRequest, createCloneFault, PendingGrantRefusal } from './clone-request.ts'
import { openSourceVolume } from './clone-source.ts'
import { GRANT } from './group-grant.ts'
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

/** Walks the volumes of a container for which that is requested and not done, one after the other. */
export async function applyPendingGrants(session: Session, request: ContainerCloneRequest): Promise<void> {
  const { namespace, name } = request.pod
  for (const { request: clone, grant, failures } of await planGrants(session, request)) {
    if (failures !== undefined) throw new Refusal(failures.map((fault) => createCloneFault(clone, fault)))
    if (grant === undefined) continue
    const table = snapshotMountTable(session.host)
    const context = { ...request, table, locationOf: createHandleLocationFinder(session.host, table) }
    using handles = new DisposableStack()
    const { root, path } = openSourceVolume(session, context, clone.source, handles)
    const { identity, group } = grant
    if (resolveVolumeIdentity(session, root, session.host.inodes.stat(root)) !== identity)
      throw Refusal.of('map-sub-path', 'is another volume now', 'kubelet tries again')
    const applied = await applyGroupToVolume(
      session,
      root,
      { groupId: group, ...GRANT },
      { volume: identity, source: path, pod: `${namespace}/${name}`, restoreOnUnmount: false },
    )
    applied.lock.dispose()
  }
}

/** Plans without keeping clones of the volumes' mounts, which would outlive an unmount by the driver. */
async function planGrants(session: Session, request: ContainerCloneRequest): Promise<PlannedClone[]> {
  using handles = new DisposableStack()
  return await planClones(session, request, handles, () => {})
}
