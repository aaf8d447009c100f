import type { Fault } from '../errors/fault.ts'
import { Refusal } from '../errors/refusal.ts'
import type { IdMap } from '../kernel/id-map.ts'
import { type MountTableSnapshot, snapshotMountTable } from '../kernel/mount-table/mountinfo.ts'
import { createHandleLocationFinder } from '../kernel/mount-table/tree-location.ts'
import type { Session } from '../state/session.ts'
import { resolveVolumeIdentity } from '../state/volume-identity.ts'
import { createCloneIdMap, readPodIdMap } from './clone-id-map.ts'
import type { CloneRequest, ContainerCloneRequest } from './clone-request.ts'
import { type CloneSource, type CloneSourceContext, openCloneSource } from './clone-source.ts'
import { type FreshVolume, findFreshVolume } from './fresh-volume.ts'
import { findGroupGrant, type GroupGrant } from './group-grant.ts'
import { cloneOwnVolume } from './own-volume.ts'
import {
  createCloneFailureFaults,
  createCloneRequestPerPath,
  refuseFileSystemType,
  refuseMountPropagation,
  refuseMountsBelow,
} from './refused-sources.ts'
import { checkMapRules, findClosedRoot, findRootFacts, type VolumeRootFacts } from './root-bits.ts'

export interface PlannedClone {
  request: CloneRequest
  /** The request by each rule's path of a directory of the node, see `createCloneRequestPerPath`. */
  requests?: readonly CloneRequest[]
  /** 'keep' if the mount needs no clone. */
  source?: CloneSource | 'keep'
  /** Undefined if the volume has content. */
  fresh?: FreshVolume | undefined
  /** A walk that the volume needs before the clone is made. */
  grant?: GroupGrant | undefined
  /** Undefined if no id is mapped. */
  map?: IdMap | undefined
  /** Mount options of the clone, once it is attached. */
  restrictions?: readonly string[] | undefined
  root?: VolumeRootFacts
  /** The reasons if the clone cannot be made. */
  failures?: readonly Fault[] | undefined
}

/**
 * Opens the sources of a container's clones, and decides the group and the id map of each. Changes nothing.
 * @param handles gets the opened handles
 * @param report is called with the index of the clone that is opened
 */
export async function planClones(
  session: Session,
  request: ContainerCloneRequest,
  handles: DisposableStack,
  report: (volume: number) => void,
): Promise<PlannedClone[]> {
  const planned: PlannedClone[] = []
  const table = snapshotMountTable(session.host)
  const context = { ...request, table, locationOf: createHandleLocationFinder(session.host, table) }
  for (const [volume, clone] of request.clones.entries()) {
    report(volume)
    planned.push(await openClone(session, context, clone, handles))
  }
  await findFreshGroups(session, planned, table)
  for (const clone of planned) await findGrant(session, clone, table)
  for (const clone of planned) await planIdMap(session, request, clone, table)
  return planned
}

/** Decides the id map of each clone again, by the groups that the volumes have on disk now. */
export async function planIdMaps(
  session: Session,
  request: ContainerCloneRequest,
  planned: readonly PlannedClone[],
): Promise<void> {
  const table = snapshotMountTable(session.host)
  for (const clone of planned) {
    for (const source of clone.request.isOwn ? [] : listCloneSources(clone)) source.from = source.readGroup()
    await planIdMap(session, request, clone, table)
  }
}

function openClone(
  session: Session,
  context: CloneSourceContext,
  clone: CloneRequest,
  handles: DisposableStack,
): Promise<PlannedClone> {
  return runCloneAttempt({ request: clone }, async (planned) => {
    if (clone.refusal !== undefined) throw new Refusal(clone.refusal)
    refuseMountPropagation(clone)
    planned.source = clone.isOwn
      ? await cloneOwnVolume(session, context, clone, handles)
      : openCloneSource(session, context, clone, handles, (handle, path) => {
          planned.requests = createCloneRequestPerPath(session, context, clone, handle)
          // An emptyDir of any type may have the group on disk, see `refuseMappedEmptyDirType`.
          if (clone.freshGroup !== 'unrecorded')
            for (const each of planned.requests) refuseFileSystemType(session.host, each, handle)
          refuseMountsBelow(session.host, context.table, handle, path)
        })
  })
}

/** Finds the volumes without content, which get their group on disk before the clones are attached. */
async function findFreshGroups(session: Session, planned: readonly PlannedClone[], table: MountTableSnapshot) {
  const groups = new Map<string, number>()
  for (const clone of planned) {
    if (clone.request.isOwn) continue
    for (const source of listCloneSources(clone)) {
      await runCloneAttempt(clone, () => {
        clone.fresh = findFreshVolume(session, clone.request, source, groups, table)
        if (clone.fresh !== undefined) groups.set(clone.fresh.identity, clone.fresh.group)
      })
    }
  }
  if (groups.size === 0) return
  // A read-only mount of the same volume shows the new group too.
  for (const source of planned.flatMap(listCloneSources)) {
    const { root } = source
    const identity = root && resolveVolumeIdentity(session, root.handle, session.host.inodes.stat(root.handle))
    source.from = groups.get(identity ?? '') ?? source.from
  }
}

function findGrant(session: Session, clone: PlannedClone, table: MountTableSnapshot): Promise<PlannedClone> {
  return runCloneAttempt(clone, () => {
    if (clone.fresh !== undefined) return
    for (const source of listCloneSources(clone))
      clone.grant ??= findGroupGrant(session, clone.requests ?? [], source, table)
  })
}

function planIdMap(
  session: Session,
  request: ContainerCloneRequest,
  clone: PlannedClone,
  table: MountTableSnapshot,
): Promise<PlannedClone> {
  return runCloneAttempt(clone, () => {
    // A walk changes the group that would be mapped.
    for (const source of clone.grant === undefined ? listCloneSources(clone) : []) {
      refuseMappedEmptyDirType(session, clone.request, source)
      // modekeep's own mounts were checked when they were made.
      if (!clone.request.isOwn) for (const each of clone.requests ?? []) checkMapRules(session, each, source, table)
      // The root of a fresh volume gets the group's bits.
      const closedRoot = clone.fresh ? undefined : findClosedRoot(session, request, clone.request, source)
      clone.root = { ...findRootFacts(session, clone.request, source), ...(closedRoot !== undefined && { closedRoot }) }
      clone.map = createCloneIdMap(source.from, source.to, readPodIdMap(session.host, request))
    }
  })
}

/** Nothing needs to be mapped if kubelet has applied the pod's fsGroup to an emptyDir, or it is or was fresh. */
function refuseMappedEmptyDirType(
  { host }: Session,
  request: CloneRequest,
  { from, to, clonedFrom }: CloneSource,
): void {
  if (request.freshGroup === 'unrecorded' && from !== to && clonedFrom !== undefined)
    refuseFileSystemType(host, request, clonedFrom)
}

/** Stores any error as the clone's failure, even an unexpected one, because the request may be optional. */
export async function runCloneAttempt(
  planned: PlannedClone,
  run: (planned: PlannedClone) => void | Promise<void>,
): Promise<PlannedClone> {
  try {
    await run(planned)
  } catch (error) {
    planned.failures = createCloneFailureFaults(planned.request, error)
  }
  return planned
}

/** Returns the source, unless the mount stays as it is or the clone has failed. */
export function listCloneSources({ source, failures }: PlannedClone): CloneSource[] {
  return failures !== undefined || source === undefined || source === 'keep' ? [] : [source]
}
