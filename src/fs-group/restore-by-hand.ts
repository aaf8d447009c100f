import type { WalkReport } from '../ownership/walk/report.ts'
import { Refusal } from '../refusal/refusal.ts'
import { unlessDamaged } from '../store/json-record.ts'
import type { Session } from '../store/session.ts'
import { hasJournal, isJournalEmpty } from '../store/volume-journal.ts'
import { hasVolumeRecord, readVolumeRecord } from '../store/volume-record.ts'
import type { VolumeByHand } from './by-hand.ts'
import { holders, type Others, othersWith } from './holders.ts'
import { groupOnDisk } from './own-volume.ts'
import { reserveVolume } from './reserve.ts'
import { restoreTree } from './restore-volume.ts'

export type RestoredByHand =
  | { outcome: 'nothing recorded'; report: undefined }
  | { outcome: 'restored' | 'unfinished'; report: WalkReport }

const NOTHING_RECORDED: RestoredByHand = { outcome: 'nothing recorded', report: undefined }

/**
 * Puts back what walks have changed of a volume, asked for by a pod or not.
 * @param isForced also what its users changed since
 * @returns `nothing recorded`: no walk is known of; `unfinished`: something that was met could not be put back
 * @throws {Refusal} naming the pod whose walked mount shows the volume, or a part of it
 */
export async function restoreByHand(
  session: Session,
  { directory, volume, tree }: VolumeByHand,
  isForced = false,
): Promise<RestoredByHand> {
  const { host, config } = session
  const recorded = () => unlessDamaged(() => readVolumeRecord(host, config.stateDir, volume))
  // Before the lock, which would make the volume known.
  if (!hasVolumeRecord(host, config.stateDir, volume) && !hasJournal(session, volume)) return NOTHING_RECORDED
  const wanted = { volume, source: directory }
  const lock = await reserveVolume(session, wanted, undefined, refuseHolders)
  try {
    const record = recorded()
    // All was put back before.
    if (!record && isJournalEmpty(session, volume, hasVolumeRecord(host, config.stateDir, volume)))
      return NOTHING_RECORDED
    const { isDone, report } = await restoreTree(session, tree, volume, record, isForced)
    return { outcome: isDone ? 'restored' : 'unfinished', report }
  } finally {
    lock.release()
  }
}

/**
 * Would it be refused now?
 * @throws {Refusal} as a restore
 */
export function refuseRestore(session: Session, { directory, volume }: VolumeByHand): void {
  refuseHolders(othersWith(session, { volume, source: directory }, undefined))
}

function refuseHolders(others: Others): void {
  const holder = holders(others).find((other) => groupOnDisk(other) !== undefined)
  if (holder === undefined) return
  throw new Refusal(
    `pod ${holder.pod ?? '(unnamed)'} uses ${holder.source} (${holder.directory}) with group ${groupOnDisk(holder)} on disk, ` +
      'which a restore would take from it: delete that pod first',
  )
}
