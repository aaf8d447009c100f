import { staleStages } from '../filesystem/staged.ts'
import type { HealPlan } from '../plan/heal.ts'
import { listMountPlaces, type MountPlace } from '../state/mount-places.ts'
import { listMountRecords, type MountRecord } from '../state/mount-record.ts'
import { listVolumes } from '../state/volume-record.ts'
import { clearPlace } from './clear-place.ts'
import { planOf, underItsLock } from './heal.ts'
import { isMountBusy, isPlaceBusy } from './locks.ts'
import { openMountPoint } from './mount-point.ts'
import type { Session } from './session.ts'
import { sweepStages } from './sweep.ts'
import { forgetLocked } from './unmount.ts'
import { collectVolume } from './volume-garbage.ts'

/** Something in the state directory, and what becomes of it. */
export interface GarbageItem {
  kind: 'mount record' | 'lock' | 'volume' | 'claim' | 'stage'
  /** A mount directory, or the path of its place where that has no whole name; a volume's identity; a stage. */
  name: string
  action: 'removed' | 'would remove' | 'kept' | 'failed'
  reason: string
}

export interface GarbageOrder {
  isDry: boolean
  /** A volume that is to be given up; its directory is not there. */
  forget: string | undefined
}

/** Removes what no mount, no pod and no restore needs, each thing under its lock; what a call is at work on is kept. */
export async function collectGarbage(session: Session, order: GarbageOrder): Promise<GarbageItem[]> {
  const { host, config } = session
  const items: GarbageItem[] = []
  const { isDry } = order
  for (const record of listMountRecords(host, config.stateDir)) {
    items.push(await trying('mount record', record.directory, () => collectRecord(session, record, isDry)))
  }
  for (const place of listMountPlaces(host, config.stateDir)) {
    if (!place.isLeft) continue
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

export function failed(kind: GarbageItem['kind'], name: string, error: unknown): GarbageItem {
  return { kind, name, action: 'failed', reason: error instanceof Error ? error.message : String(error) }
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
  return clearPlace(session, place) ? { action: 'removed', reason } : BUSY
}
