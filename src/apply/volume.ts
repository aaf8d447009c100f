import type { Handle, Lock } from '../host/host.ts'
import { Journal } from '../ownership/journal.ts'
import { own } from '../ownership/own.ts'
import { rootMatches } from '../ownership/policy.ts'
import type { WalkReport } from '../ownership/report.ts'
import { restore } from '../ownership/restore.ts'
import { Refusal } from '../protocol/refusal.ts'
import { JOURNAL_FILE, volumeStateDirectory } from '../state/paths.ts'
import { readVolumeRecord, removeVolumeRecord, writeVolumeRecord } from '../state/volume-record.ts'
import { holdersOf } from './holders.ts'
import { lockVolume } from './locks.ts'
import type { Session } from './session.ts'

export interface OwnOrder {
  volume: string
  group: number
  policy: 'OnRootMismatch' | 'Always'
  source: string
  directory: string
}

/**
 * Gives a volume to a group by walking it, unless that is done already. The lock that is returned must be held until
 * the mount is attached: only then do others see that the volume has a holder.
 * @throws {Refusal} when another group's mount holds the volume
 */
export async function ownVolume(session: Session, tree: Handle, order: OwnOrder): Promise<Lock> {
  const { host, config } = session
  const lock = await lockVolume(host, config.stateDir, order.volume)
  try {
    refuseOtherGroups(session, order)
    const record = readVolumeRecord(host, config.stateDir, order.volume)
    const finished = record === undefined || (record.complete && record.group === order.group)
    if (order.policy === 'OnRootMismatch' && finished && rootMatches(host.inodes.stat(tree), order.group)) {
      session.note({ ownership: 'the root has the group already: not walked' })
    } else {
      walk(session, tree, order)
    }
    return lock
  } catch (error) {
    lock.release()
    throw error
  }
}

function refuseOtherGroups(session: Session, { volume, group, directory }: OwnOrder): void {
  const other = holdersOf(session, volume, directory).find(({ walkGroup }) => walkGroup >= 0 && walkGroup !== group)
  if (!other) return
  throw new Refusal(
    `the volume belongs to group ${other.walkGroup} while pod ${other.pod || '(unnamed)'} uses it (${other.directory}), so group ${group} cannot have it: ` +
      'give both pods the same fsGroup, or wait until that pod is gone',
  )
}

function walk(session: Session, tree: Handle, { volume, group, source }: OwnOrder): void {
  const { host, config } = session
  const record = { volume, source, group, groupAccess: 'keep' as const }
  writeVolumeRecord(host, config.stateDir, { ...record, complete: false })
  const journal = new Journal(host, journalPath(session, volume), volume)
  try {
    note(session, own(host.inodes, tree, group, journal))
  } finally {
    journal.close()
  }
  writeVolumeRecord(host, config.stateDir, { ...record, complete: true })
}

/** Puts back what walks have changed of a volume. Nothing recorded: nothing done. */
export async function restoreVolume(
  session: Session,
  tree: Handle,
  volume: string,
  force = false,
): Promise<WalkReport> {
  const { host, config } = session
  const lock = await lockVolume(host, config.stateDir, volume)
  try {
    const journal = new Journal(host, journalPath(session, volume), volume)
    try {
      const report = restore(host.inodes, tree, journal, force)
      removeVolumeRecord(host, config.stateDir, volume)
      note(session, report)
      return report
    } finally {
      journal.close()
    }
  } finally {
    lock.release()
  }
}

function journalPath({ config }: Session, volume: string): string {
  return `${volumeStateDirectory(config.stateDir, volume)}/${JOURNAL_FILE}`
}

function note(session: Session, { visited, changed, alreadyRight, left }: WalkReport): void {
  session.note({ inodes: { visited, changed, alreadyRight, left } })
}
