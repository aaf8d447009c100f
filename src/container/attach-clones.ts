import type { FaultCode } from '../errors/entries/index.ts'
import { renderFaults } from '../errors/fault.ts'
import { formatError, quoteValue, Refusal } from '../errors/refusal.ts'
import { findConflictingReservations } from '../fsgroup/conflicts.ts'
import { applyIdMap, SEVERAL_GROUPS_REASON, UnmappableVolume } from '../fsgroup/map-group.ts'
import { deferHandleClose, type Handle, type Host } from '../kernel/host.ts'
import { createMountRestrictionsReader, MOUNT_ATTR_RDONLY } from '../kernel/mount-table/mount-flags.ts'
import { type ContainerRecord, containerRecords, isContainerId } from '../state/container-record.ts'
import type { Session } from '../state/session.ts'
import { hasVolumeUniformGroup } from '../state/volume-journal.ts'
import { refusePendingGrants } from './apply-grants.ts'
import {
  type CloneAttachStep,
  type CloneOutcome,
  type ContainerCloneOutcome,
  type ContainerCloneRequest,
  createCloneFault,
  createContainerRecord,
} from './clone-request.ts'
import {
  attachClone,
  createContainerDirectory,
  lockContainer,
  removeStagedClones,
  resolveClonePath,
} from './clone-staging.ts'
import { applyGroupToFreshVolume } from './fresh-volume.ts'
import { listCloneSources, type PlannedClone, planClones, planIdMaps, runCloneAttempt } from './plan-clones.ts'
import { restoreVolumeSetGid, setCloneSetGid } from './root-bits.ts'

/**
 * Makes all clones of a container before it is created, or removes them again and throws. If the request is optional,
 * clones that cannot be made are left out.
 * @throws {Refusal} with every fault: annotation, volume, reason and remedy
 */
export async function attachContainerClones(
  session: Session,
  request: ContainerCloneRequest,
  report: (step: CloneAttachStep) => void = () => {},
): Promise<ContainerCloneOutcome> {
  const { container } = request
  if (!isContainerId(container))
    throw Refusal.of('map-failed', `the runtime named a container ${quoteValue(container)}`, 'report this')
  report({ step: 'lock' })
  using _lock = await lockContainer(session, container)
  removeStagedClones(session, container)
  using handles = new DisposableStack()
  const planned = await planClones(session, request, handles, (volume) => report({ step: 'open', volume }))
  refuseFailedClones(request, planned)
  refusePendingGrants(planned)
  if (planned.every(({ source }) => source === 'keep')) return { mounts: planned.map(() => ({ do: 'keep' })) }
  const failedBefore = planned.filter(({ failures }) => failures !== undefined).length
  report({ step: 'records' })
  try {
    containerRecords.write(session, createCloneRecord(session, request, planned))
    if (await applyFreshGroups(session, request, planned)) {
      await planIdMaps(session, request, planned)
      containerRecords.write(session, createCloneRecord(session, request, planned))
    }
    await refuseGroupChanges(session, planned)
    refuseFailedClones(request, planned)
    const directory = await createContainerDirectory(session, container)
    using _directory = deferHandleClose(session.host.inodes, directory)
    for (const [index, clone] of planned.entries()) {
      report({ step: 'attach', volume: index })
      await createClone(session, { directory, pod: `${request.pod.namespace}/${request.pod.name}` }, index, clone)
    }
    await readCloneRestrictions(session.host, planned)
    refuseFailedClones(request, planned)
    const failed = planned.filter(({ failures }) => failures !== undefined).length
    if (failed > failedBefore) containerRecords.write(session, createCloneRecord(session, request, planned))
  } catch (error) {
    removeContainerClones(session, container)
    await restoreVolumeSetGid(
      session,
      planned.flatMap(({ root }) => root ?? []),
      { isSweep: true },
    )
    throw error
  }
  return { mounts: planned.map((clone, index) => createCloneOutcome(session, container, clone, index)) }
}

/** Another container changes the volume now. The next attempt finds the group that it has then. */
const RETRIED_REFUSALS: ReadonlySet<FaultCode> = new Set(['group-conflict', 'map-sub-path'])

/**
 * Applies the group to fresh volumes. One that is refused, such as a copy of another volume, is mapped like one with files.
 * @returns whether one was refused, so that the id maps must be planned again
 */
async function applyFreshGroups(
  session: Session,
  { pod: { namespace, name } }: ContainerCloneRequest,
  planned: readonly PlannedClone[],
): Promise<boolean> {
  let isRefused = false
  for (const clone of planned) {
    const { fresh, request } = clone
    if (fresh === undefined) continue
    for (const source of listCloneSources(clone)) {
      await runCloneAttempt(clone, async () => {
        try {
          await applyGroupToFreshVolume(session, request, source, fresh, `${namespace}/${name}`)
        } catch (error) {
          const [fault] = error instanceof Refusal ? error.faults : []
          if (fault === undefined || RETRIED_REFUSALS.has(fault.code)) throw error
          isRefused = true
          const what = `volume ${quoteValue(request.volume)} is mapped, although the pod may not write to its root`
          session.warn(`${what}: ${formatError(error)}`, fault.code)
        }
      })
    }
  }
  return isRefused
}

function refuseFailedClones({ isOptional }: ContainerCloneRequest, planned: readonly PlannedClone[]): void {
  const faults = planned.flatMap(({ request, failures = [] }) =>
    failures.map((fault) => createCloneFault(request, fault)),
  )
  if (!isOptional && faults.length > 0) throw new Refusal(faults)
}

/** Refuses volumes whose group on disk changes now, or has just changed, because clones map the recorded group. */
async function refuseGroupChanges(session: Session, planned: readonly PlannedClone[]): Promise<void> {
  // The mount of modekeep's own volume already protects its group.
  const checked = planned.flatMap((clone) =>
    clone.request.isOwn ? [] : listCloneSources(clone).map((source) => ({ clone, source })),
  )
  const groups = checked.map(({ source: { identity = '', path, from } }) => ({
    volume: identity,
    source: path,
    group: from,
  }))
  const changes = await findConflictingReservations(session, groups)
  for (const [index, { clone, source }] of checked.entries()) {
    await runCloneAttempt(clone, () => {
      if (source.identity !== undefined && !hasVolumeUniformGroup(session, source.identity))
        throw new UnmappableVolume(SEVERAL_GROUPS_REASON)
      if (changes[index] === undefined && source.readGroup() === source.from) return
      throw Refusal.of(
        'map-sub-path',
        'is being given another group by another call',
        'kubelet tries again, wait until that is done',
      )
    })
  }
}

async function createClone(
  session: Session,
  { directory, pod }: { directory: Handle; pod: string },
  index: number,
  planned: PlannedClone,
): Promise<void> {
  const { request, map } = planned
  for (const source of listCloneSources(planned)) {
    const { tree, clonedFrom, fsType } = source
    await runCloneAttempt(planned, async () => {
      // setFlags also makes the mount private.
      session.host.mounts.setFlags(tree, { set: request.options.includes('ro') ? MOUNT_ATTR_RDONLY : 0, clear: 0 })
      if (map !== undefined) applyIdMap(session, tree, clonedFrom, map, fsType)
      await setCloneSetGid(session, request, source, planned.root?.rootVolume, pod)
      attachClone(session, directory, index, tree)
    })
  }
}

/** Is called after all clones are attached, because on kernels before Linux 6.8 it reads the mount table, once. */
async function readCloneRestrictions(host: Host, planned: readonly PlannedClone[]): Promise<void> {
  const read = createMountRestrictionsReader(host)
  for (const clone of planned) {
    for (const { tree } of listCloneSources(clone)) {
      await runCloneAttempt(clone, () => {
        clone.restrictions = read(tree)
      })
    }
  }
}

function createCloneRecord(
  { host }: Session,
  request: ContainerCloneRequest,
  planned: readonly PlannedClone[],
): ContainerRecord {
  const volumes = planned.flatMap(
    ({ request: { volume, destination, source: requested, isOwn, group }, source, root, failures }) => {
      if (source === 'keep') return []
      const { path = requested, identity, from, to = group } = source ?? {}
      const why = failures && renderFaults(failures)
      return [{ volume, destination, source: path, isOwn, identity, from, to, ...root, why }]
    },
  )
  return createContainerRecord(host, request, 'created', volumes)
}

function createCloneOutcome(session: Session, container: string, planned: PlannedClone, index: number): CloneOutcome {
  const { failures, source, restrictions = [] } = planned
  if (failures !== undefined) return { do: 'without', why: renderFaults(failures) }
  if (source === 'keep') return { do: 'keep' }
  return { do: 'replace', source: resolveClonePath(session, container, index), restrictions }
}

/** Removes the record last, because the next task finds clones that could not be removed by it. */
function removeContainerClones(session: Session, container: string): void {
  try {
    removeStagedClones(session, container)
    containerRecords.remove(session, container)
  } catch (error) {
    session.warn(`could not take the mounts of container ${container} away: ${formatError(error)}`, 'cleanup-failed')
  }
}
