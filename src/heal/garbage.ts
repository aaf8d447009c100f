import { forgetLocked } from '../mount/unmount.ts'
import { openMountPoint } from '../mount-table/mount-point.ts'
import { removeLeftover } from '../store/leftovers.ts'
import { isMountBusy, isPlaceBusy } from '../store/locks.ts'
import { listMountRecords, type MountRecord } from '../store/mount-record.ts'
import { leftoverFiles, listMountPlaces, type MountPlace } from '../store/places.ts'
import type { Session } from '../store/session.ts'
import { listVolumes } from '../store/volume-record.ts'
import { staleStages, sweepStages } from '../volume/kind/staged.ts'
import type { GarbageItem, GarbageOrder } from './garbage-item.ts'
import { failed } from './garbage-item.ts'
import { planOf, underItsLock } from './heal.ts'
import type { HealPlan } from './plan.ts'
import { collectVolume } from './volume-garbage.ts'

/** Removes what no mount, no pod and no restore needs, each thing under its lock; what a call is at work on is kept. */
export async function collectGarbage(session: Session, order: GarbageOrder): Promise<GarbageItem[]> {
  const { host, config } = session
  const items: GarbageItem[] = []
  const { isDry } = order
  for (const record of listMountRecords(host, config.stateDir)) {
    items.push(await trying('mount record', record.directory, () => collectRecord(session, record, isDry)))
  }
  for (const place of listMountPlaces(host, config.stateDir)) {
    if (!leftoverFiles(host, place)) continue
    items.push(await trying('lock', place.directory || place.path, () => collectLock(session, place, isDry)))
  }
  // After the mounts: a record that is gone no longer needs its volume.
  for (const volume of listVolumes(host, config.stateDir)) {
    items.push(...(await collectVolume(session, volume, order).catch((error) => [failed('volume', volume, error)])))
  }
  const stages = staleStages(host, config.stateDir)
  if (!isDry) sweepStages(session)
  const left = new Set(isDry ? [] : staleStages(host, config.stateDir))
  for (const name of stages) {
    const action = isDry ? 'would remove' : left.has(name) ? 'failed' : 'removed'
    items.push({ kind: 'stage', name, action, reason: 'the call that it was for is over' })
  }
  return items
}

type Fate = Pick<GarbageItem, 'action' | 'reason'>

async function trying(
  kind: GarbageItem['kind'],
  name: string,
  collect: () => Fate | Promise<Fate>,
): Promise<GarbageItem> {
  try {
    return { kind, name, ...(await collect()) }
  } catch (error) {
    return failed(kind, name, error)
  }
}

const BUSY: Fate = { action: 'kept', reason: 'a call is at work on it' }

/** As heal does, and only where the record is over: a pod that went without an unmount has its restore paid. */
async function collectRecord(session: Session, record: MountRecord, isDry: boolean): Promise<Fate> {
  if (isDry) return lookOnly(session, record)
  const fate = await underItsLock(session, record.directory, async (now, point) => {
    const plan = planOf(session, now, point)
    if (plan.action === 'forget') await forgetLocked(session, point, now, plan.pays ?? false)
    return fateOf(plan, 'removed')
  })
  if (fate === undefined) return { action: 'removed', reason: 'another call has removed it meanwhile' }
  return 'action' in fate ? fate : BUSY
}

function lookOnly(session: Session, record: MountRecord): Fate {
  const { host, config } = session
  if (isMountBusy(host, config.stateDir, record.directory)) return BUSY
  const point = openMountPoint(host, record.directory)
  try {
    return fateOf(planOf(session, record, point), 'would remove')
  } finally {
    if (point) host.inodes.close(point.parent)
  }
}

function fateOf({ action, reason }: HealPlan, gone: 'removed' | 'would remove'): Fate {
  if (action === 'forget') return { action: gone, reason }
  if (action === 'leave') return { action: 'kept', reason }
  return { action: 'kept', reason: reason === '' ? 'it is mounted' : `${reason}: heal mends it` }
}

function collectLock(session: Session, place: MountPlace, isDry: boolean): Fate {
  const reason = 'it was left by a call that died'
  if (isDry) return isPlaceBusy(session.host, place.path) ? BUSY : { action: 'would remove', reason }
  return removeLeftover(session, place) ? { action: 'removed', reason } : BUSY
}
