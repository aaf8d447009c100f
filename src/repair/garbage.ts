import { formatError, Refusal } from '../errors/refusal.ts'
import { createPathLookups, createUnresponsiveRefusal } from '../kernel/mount-table/responsiveness.ts'
import { formatPodDirectoryLeftovers } from '../mount/unmount.ts'
import { locateVolume } from '../state/find-volume.ts'
import { isImportBusy, removeInterruptedImport } from '../state/import-stage.ts'
import { isRecordDirectoryBusy } from '../state/lock-holders.ts'
import { removeLeftoverRecordDirectory } from '../state/locks.ts'
import { listRecordedMounts, type MountRecord } from '../state/mount-record.ts'
import { listVolumesWithReservation } from '../state/process-records.ts'
import {
  listLeftoverFiles,
  listMountRecordDirectories,
  listVolumesInImport,
  listVolumesWithRecords,
  locateMountRecords,
} from '../state/record-directories.ts'
import type { Session } from '../state/session.ts'
import { volumeRecords } from '../state/volume-record.ts'
import { listStaleStages, unmountStaleStages } from '../volume/kind/staged.ts'
import { forgetEndedMount, type HealPlan, judgeMount, judgeMountLocked } from './heal-plan.ts'
import { KubeletPods, type PodFate } from './kubelets.ts'
import {
  collectVolumeGarbage,
  type GarbageFate,
  type GarbageItem,
  type GarbageRequest,
  IN_PROGRESS_FATE,
  INTERRUPTED_CALL_FATE,
} from './volume-garbage.ts'

/** Removes records that no mount, pod or restore needs, each under its lock. Records that a call uses are kept. */
export async function collectGarbage(
  session: Session,
  request: GarbageRequest,
  kubelets = new KubeletPods(),
): Promise<GarbageItem[]> {
  const { host, config } = session
  const items: GarbageItem[] = []
  const { isDry } = request
  for (const { directory, record, problem } of listRecordedMounts(session)) {
    if (problem) items.push({ kind: 'mount record', name: directory, action: 'kept', reason: problem.message })
    if (record)
      items.push(
        await collectGarbageItem('mount record', directory, () => collectMountRecord(session, record, isDry, kubelets)),
      )
  }
  for (const place of listMountRecordDirectories(session)) {
    if (!listLeftoverFiles(session, place)) continue
    const collect = () =>
      (isDry ? !isRecordDirectoryBusy(session, place) : removeLeftoverRecordDirectory(session, place))
        ? INTERRUPTED_CALL_FATE
        : IN_PROGRESS_FATE
    items.push(await collectGarbageItem('lock', place.name, collect))
  }
  // Volumes follow the mounts, because a removed mount record no longer needs its volume.
  const lookups = createPathLookups(session)
  for (const volume of new Set([...listVolumesWithRecords(session), ...listVolumesWithReservation(session)])) {
    const collected = collectVolumeGarbage(session, volume, request, lookups)
    items.push(...(await collected.catch((error) => [toFailedGarbageItem('volume', volume, error)])))
  }
  for (const volume of listVolumesInImport(session)) {
    const collect = () =>
      (isDry ? !isImportBusy(session, volume) : removeInterruptedImport(session, volume))
        ? INTERRUPTED_CALL_FATE
        : IN_PROGRESS_FATE
    items.push(await collectGarbageItem('import', volume, collect))
  }
  const stages = listStaleStages(host, config.stateDir)
  if (!isDry) unmountStaleStages(session)
  const left = new Set(isDry ? [] : listStaleStages(host, config.stateDir))
  for (const name of stages) {
    items.push({ kind: 'stage', name, ...INTERRUPTED_CALL_FATE, ...(left.has(name) && { action: 'failed' }) })
  }
  return items
}

async function collectGarbageItem(
  kind: GarbageItem['kind'],
  name: string,
  collect: () => GarbageFate | Promise<GarbageFate>,
): Promise<GarbageItem> {
  try {
    return { kind, name, ...(await collect()) }
  } catch (error) {
    return toFailedGarbageItem(kind, name, error)
  }
}

function toFailedGarbageItem(kind: GarbageItem['kind'], name: string, error: unknown): GarbageItem {
  return { kind, name, action: 'failed', reason: formatError(error) }
}

/** Removes the record of an unmounted volume, as heal does. Runs the pending restore of a deleted pod. */
async function collectMountRecord(
  session: Session,
  record: MountRecord,
  isDry: boolean,
  kubelets: KubeletPods,
): Promise<GarbageFate> {
  const { directory } = record
  const kept = (plan: HealPlan, left: readonly string[], busyReason?: string) => {
    if (left.length === 0 && busyReason !== undefined) return { action: 'kept' as const, reason: busyReason }
    if (left.length === 0 && plan.state === 'busy') return toGarbageFate(plan)
    return left.length > 0
      ? { action: 'kept' as const, reason: formatPodDirectoryLeftovers(left) }
      : addPodFateToReason(toGarbageFate(plan), () => kubelets.findFate(session.host, record))
  }
  if (isDry) {
    if (isRecordDirectoryBusy(session, locateMountRecords(session, directory))) return IN_PROGRESS_FATE
    return judgeMount(session, record, ({ plan, left }) => kept(plan, left))
  }
  const fate = await judgeMountLocked(session, directory, async (judged) => {
    const { left, busy } =
      judged.plan.action === 'forget' ? await forgetEndedMount(session, judged) : { left: [], busy: undefined }
    return kept(judged.plan, left, busy?.reason)
  })
  if (fate === 'gone') return { action: 'removed', reason: 'another call has removed it meanwhile' }
  return fate === 'locked' ? IN_PROGRESS_FATE : fate
}

/** Adds the state of the pod to the reason why a record is kept: only heal unmounts. @param ask finds the pod's state */
async function addPodFateToReason(fate: GarbageFate, ask: () => Promise<PodFate>): Promise<GarbageFate> {
  if (fate.action !== 'kept') return fate
  const pod = await ask()
  if (pod.is === 'living') return fate
  return { action: 'kept', reason: pod.is === 'doubtful' ? pod.reason : `${pod.reason}: modekeep heal unmounts it` }
}

function toGarbageFate({ action, reason }: HealPlan): GarbageFate {
  if (action === 'forget') return { action: 'removed', reason }
  if (action === 'leave') return { action: 'kept', reason }
  return { action: 'kept', reason: reason === '' ? 'it is mounted' : `${reason}: heal repairs it` }
}

/** @throws {Refusal} if the volume can be found and restored, or may be on a server that does not respond */
export async function refuseToForgetVolume(session: Session, volume: string): Promise<void> {
  // The volume was restored: its remaining entries, which its users changed, may be removed on request.
  if (volumeRecords.find(session, volume).record?.left !== undefined) return
  const place = await locateVolume(session, volume, createPathLookups(session))
  if (place === undefined) return
  if (place.isSilent) throw createUnresponsiveRefusal(place.path)
  throw Refusal.of(
    'volume-unknown',
    `volume ${volume} is at ${place.path}`,
    `put it back with "modekeep restore ${volume}"`,
  )
}
