import type { Fault } from '../errors/fault.ts'
import { formatError, Refusal, unwrapSuppressedError } from '../errors/refusal.ts'
import { restoreLeftoverRootSetGid } from '../fsgroup/root-bit.ts'
import {
  type ContainerRecord,
  containerRecords,
  createContainerExistenceCheck,
  hasContainerClones,
  isContainerId,
  listRecordedContainerIds,
  mayContainerRun,
} from '../state/container-record.ts'
import { type NriPluginRecord, nriPluginRecord } from '../state/process-records.ts'
import type { RecordReadResult } from '../state/record.ts'
import { type Session, warnOnFailure } from '../state/session.ts'
import { applyPendingGrants } from './apply-grants.ts'
import { attachContainerClones } from './attach-clones.ts'
import {
  type CloneAttachStep,
  type CloneOutcome,
  CONTAINER_CREATION_GRACE_MS,
  type ContainerCloneRequest,
  createContainerRecord,
  type OwnVolumeMountsRequest,
  PendingGrantRefusal,
  type RuntimeSnapshot,
} from './clone-request.ts'
import { checkCloneSources } from './clone-source.ts'
import {
  listLockedContainers,
  listStagedContainers,
  lockContainer,
  removeEmptyStagingMount,
  removeStagedClones,
  tryLockContainer,
} from './clone-staging.ts'
import { readOwnVolumeRestrictions } from './own-volume.ts'
import { restoreVolumeSetGid } from './root-bits.ts'

/** A task of a worker process, sent by the thread that answers the runtime as a line of JSON. */
export type ContainerTask =
  | { do: 'attach'; request: ContainerCloneRequest }
  /** The container has started, or it was removed or never created ('gone'). */
  | { do: 'release'; container: string; as: 'started' | 'gone' }
  | { do: 'reconcile'; known?: RuntimeSnapshot }
  /** Records that the container runs without its clones. */
  | { do: 'without'; request: ContainerCloneRequest; why: string }
  /** Opens a container's volumes as `attach` does, without making a clone. It ends once they respond. */
  | { do: 'check'; request: ContainerCloneRequest }
  /** Walks the container's volumes for which its pod requests that. */
  | { do: 'grant'; request: ContainerCloneRequest }
  /** Records whether the runtime has the plugin registered. */
  | { do: 'registration'; record: NriPluginRecord }
  /** Reads the restrictions of modekeep's own mounts, which the runtime applies to the container's. */
  | { do: 'restrictions'; request: OwnVolumeMountsRequest }

/** Result of a task. With `failure` as the reason nothing was made, and the container must not be created. */
export type ContainerTaskResult =
  | {
      failure?: undefined
      mounts?: readonly CloneOutcome[]
      /** Mount options of each mount of the request. Mounts of other drivers have none. */
      restrictions?: readonly (readonly string[])[]
    }
  | {
      failure: string
      faults?: readonly Fault[]
      isUnexpected?: boolean
      /** A volume must be walked first. */
      isGrantPending?: true
    }

/** Runs a task. Never throws. */
export async function runContainerTask(
  session: Session,
  task: ContainerTask,
  report: (step: CloneAttachStep) => void = () => {},
): Promise<ContainerTaskResult> {
  try {
    switch (task.do) {
      case 'attach':
        return await attachContainerClones(session, task.request, report)
      case 'release':
        await releaseContainerClones(session, task.container, task.as)
        return {}
      case 'without':
        await recordContainerWithoutClones(session, task.request, task.why)
        return {}
      case 'check':
        checkCloneSources(session, task.request)
        return {}
      case 'grant':
        await applyPendingGrants(session, task.request)
        return {}
      case 'registration':
        nriPluginRecord.write(session, task.record)
        return {}
      case 'restrictions':
        return { restrictions: readOwnVolumeRestrictions(session, task.request) }
      case 'reconcile':
        session.note({ tookAway: reconcileContainers(session, task.known) })
        await restoreLeftoverRootSetGid(session)
        return {}
    }
  } catch (error) {
    const first = unwrapSuppressedError(error)
    if (first instanceof PendingGrantRefusal)
      return { failure: first.message, faults: first.faults, isGrantPending: true }
    if (first instanceof Refusal) return { failure: first.message, faults: first.faults }
    return { failure: `modekeep failed: ${formatError(error)}; see its log on the node`, isUnexpected: true }
  }
}

/**
 * Removes a container's clones from the node, because they keep another driver from unmounting its volume.
 * @param as `started`: the container has mounts of its own; `gone`: it ended or was never created, and its record is removed
 */
export async function releaseContainerClones(
  session: Session,
  container: string,
  as: 'started' | 'gone',
): Promise<void> {
  if (!isContainerId(container)) return
  using _ = await lockContainer(session, container)
  const { record } = as === 'gone' ? containerRecords.find(session, container) : {}
  applyContainerState(session, container, as)
  if (record !== undefined) await restoreVolumeSetGid(session, record.volumes)
}

/** The caller holds the container's lock. @returns whether the container had clones */
function applyContainerState(session: Session, container: string, state: 'started' | 'gone'): boolean {
  const hadMounts = removeStagedClones(session, container)
  if (state === 'gone') {
    containerRecords.remove(session, container)
    return hadMounts
  }
  const { record } = containerRecords.find(session, container)
  if (record !== undefined && record.state !== 'started') containerRecords.write(session, { ...record, state })
  return hadMounts
}

/** A container starts within seconds of its creation. */
const MAX_CONTAINER_START_MS = 10 * 60 * 1000

/**
 * Removes clones and records that missed events, crashed tasks and a reboot have left. Containers that a task has locked are
 * skipped.
 * @param snapshot the runtime's containers; undefined: the node's processes, mounts and records decide
 * @param isDry changes nothing
 * @returns the containers of which something was removed, or would be
 */
export function reconcileContainers(session: Session, snapshot?: RuntimeSnapshot, isDry = false): string[] {
  const changed: string[] = []
  const staged = listStagedContainers(session)
  const isPresent = createContainerExistenceCheck(session)
  for (const container of [...new Set([...listRecordedContainerIds(session), ...staged])].sort()) {
    session.isAlive?.()
    warnOnFailure(session, `could not put the mounts of container ${container} in order`, () => {
      using lock = tryLockContainer(session, container)
      // The record may have changed before the lock was acquired.
      const found = lock === undefined ? {} : containerRecords.find(session, container)
      const state = lock === undefined ? 'keep' : decideContainerState(session, container, found, snapshot, isPresent)
      if (state === 'keep') return
      const hasMounts = isDry ? staged.includes(container) : applyContainerState(session, container, state)
      if (hasMounts || state === 'gone' || found.record?.state === 'created') changed.push(container)
    })
  }
  if (!isDry) {
    removeStaleContainerLocks(session)
    warnOnFailure(session, 'could not remove the place of clones', () => removeEmptyStagingMount(session))
  }
  return changed
}

/** Removes locks of tasks that crashed before they wrote a record, or after they removed it. */
function removeStaleContainerLocks(session: Session): void {
  const others = new Set([...listRecordedContainerIds(session), ...listStagedContainers(session)])
  for (const container of listLockedContainers(session)) {
    if (others.has(container)) continue
    // Releasing a lock removes its file.
    warnOnFailure(session, `could not remove the lock of container ${container}`, () => {
      tryLockContainer(session, container)?.[Symbol.dispose]()
    })
  }
}

function decideContainerState(
  session: Session,
  container: string,
  { record, problem }: RecordReadResult<ContainerRecord>,
  snapshot: RuntimeSnapshot | undefined,
  isPresent: (container: string) => boolean,
): 'keep' | 'started' | 'gone' {
  // An unreadable record is kept while its container may exist, because it protects the group of its volumes.
  if (problem !== undefined) {
    if (snapshot === undefined) return isPresent(container) ? 'keep' : 'gone'
    if (snapshot.created.includes(container)) return 'keep'
    return snapshot.started.includes(container) ? 'started' : 'gone'
  }
  // Clones without a record are removed, unless the runtime has still to bind them.
  if (record === undefined) {
    return snapshot?.created.includes(container) && !snapshot.unmapped.includes(container) ? 'keep' : 'gone'
  }
  if (!mayContainerRun(session, record)) return 'gone'
  if (snapshot === undefined)
    return record.state === 'created' && Date.now() - record.at > MAX_CONTAINER_START_MS ? 'started' : 'keep'
  if (record.at > snapshot.at) return 'keep'
  if (snapshot.unmapped.includes(container) && hasContainerClones(record)) return 'gone'
  if (snapshot.created.includes(container)) return 'keep'
  if (snapshot.started.includes(container)) return 'started'
  const isNew = record.state === 'created' && snapshot.at - record.at < CONTAINER_CREATION_GRACE_MS
  // A later snapshot is outdated, so containers that it does not list may be new ones.
  if (snapshot.isLater) return isNew ? 'gone' : 'keep'
  return isNew ? 'keep' : 'gone'
}

/**
 * Records that a container runs without its clones, and removes those that were made for it. An unreadable record is kept.
 * A record without clones is kept too, because its reasons are more precise.
 */
export async function recordContainerWithoutClones(
  session: Session,
  request: ContainerCloneRequest,
  reason: string,
): Promise<void> {
  const { container, clones } = request
  if (!isContainerId(container)) return
  using _ = await lockContainer(session, container)
  const { record, problem } = containerRecords.find(session, container)
  if (problem !== undefined || (record !== undefined && !hasContainerClones(record))) return
  removeStagedClones(session, container)
  const volumes = clones.map(({ volume, destination, source, isOwn, group }) => {
    return { volume, destination, source, isOwn, to: group, why: reason }
  })
  containerRecords.write(session, createContainerRecord(session.host, request, 'started', volumes))
}
