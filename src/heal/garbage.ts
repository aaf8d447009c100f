import { removeLeftover } from '../store/leftovers.ts'
import { isMountBusy, isPlaceBusy } from '../store/locks.ts'
import { listMountRecords, listUnreadableMounts, type MountRecord } from '../store/mount-record.ts'
import { leftoverFiles, listMountPlaces, type MountPlace } from '../store/places.ts'
import type { Session } from '../store/session.ts'
import { listVolumes } from '../store/volume-record.ts'
import { staleStages, sweepStages } from '../volume/kind/staged.ts'
import { BUSY, type Fate, failed, type GarbageItem, type GarbageOrder, INTERRUPTED } from './garbage-item.ts'
import { forget, judge, judgeLocked } from './judge.ts'
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
  for (const { directory, problem } of listUnreadableMounts(host, config.stateDir)) {
    items.push({ kind: 'mount record', name: directory, action: 'kept', reason: problem.message })
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
    items.push({ kind: 'stage', name, ...INTERRUPTED, ...(left.has(name) && { action: 'failed' }) })
  }
  return items
}

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

/** As heal does, and only where the record is over: the pending restore of a deleted pod is run. */
async function collectRecord(session: Session, record: MountRecord, isDry: boolean): Promise<Fate> {
  if (isDry) {
    if (isMountBusy(session.host, session.config.stateDir, record.directory)) return BUSY
    return judge(session, record, ({ plan }) => fateOf(plan))
  }
  const fate = await judgeLocked(session, record.directory, async (judged) => {
    if (judged.plan.action === 'forget') await forget(session, judged)
    return fateOf(judged.plan)
  })
  if (fate === 'gone') return { action: 'removed', reason: 'another call has removed it meanwhile' }
  return fate === 'busy' ? BUSY : fate
}

function fateOf({ action, reason }: HealPlan): Fate {
  if (action === 'forget') return { action: 'removed', reason }
  if (action === 'leave') return { action: 'kept', reason }
  return { action: 'kept', reason: reason === '' ? 'it is mounted' : `${reason}: heal repairs it` }
}

function collectLock(session: Session, place: MountPlace, isDry: boolean): Fate {
  const isOver = isDry ? !isPlaceBusy(session.host, place.path) : removeLeftover(session, place)
  return isOver ? INTERRUPTED : BUSY
}
