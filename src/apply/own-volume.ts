import type { Handle, Lock } from '../host/host.ts'
import { own } from '../ownership/own.ts'
import { rootMatches } from '../ownership/policy.ts'
import { Refusal } from '../protocol/refusal.ts'
import { volumeStateDirectory } from '../state/paths.ts'
import { readVolumeRecord, type VolumeRecord, writeVolumeRecord } from '../state/volume-record.ts'
import { liveMounts, shows } from './holders.ts'
import { hasJournal, noteWalk, openJournal } from './journal.ts'
import { lockVolume } from './locks.ts'
import type { Session } from './session.ts'

export interface OwnOrder {
  volume: string
  group: number
  groupAccess: 'keep' | 'grant'
  policy: 'OnRootMismatch' | 'Always'
  source: string
  directory: string
  restoreOnUnmount: boolean
}

/**
 * Gives a volume to a group by walking it, unless that is done already. The lock that is returned must be held until
 * the mount is attached: only then do others see that the volume has a holder.
 * @throws {Refusal} when another group's mount holds the volume or a part of it
 */
export async function ownVolume(session: Session, tree: Handle, order: OwnOrder): Promise<Lock> {
  const { host, config } = session
  const lock = await lockVolume(host, config.stateDir, order.volume)
  try {
    refuseOthers(session, order, host.inodes.stat(tree).device)
    const record = readVolumeRecord(host, config.stateDir, order.volume)
    const restoreOwed = order.restoreOnUnmount || (record?.restoreOwed ?? false)
    if (!needsWalk(session, tree, order)) {
      session.note({ ownership: 'the root has the group already: not walked' })
      if (record && record.restoreOwed !== restoreOwed) {
        writeVolumeRecord(host, config.stateDir, { ...record, restoreOwed })
      }
    } else {
      const { volume, source, group, groupAccess } = order
      const next = { volume, source, group, groupAccess, restoreOwed }
      walk(session, tree, next, record !== undefined)
    }
    return lock
  } catch (error) {
    lock.release()
    throw error
  }
}

/** False where the policy lets the root speak for the tree: it shows what a walk leaves, and no walk was left half way. */
export function needsWalk(session: Session, tree: Handle, order: Omit<OwnOrder, 'restoreOnUnmount'>): boolean {
  if (order.policy === 'Always') return true
  const { volume, group, groupAccess } = order
  const record = readVolumeRecord(session.host, session.config.stateDir, volume)
  const finished = record
    ? record.complete && record.group === group && record.groupAccess === groupAccess
    : !hasJournal(session, volume)
  return !finished || !rootMatches(session.host.inodes.stat(tree), { group, access: groupAccess })
}

function walk(session: Session, tree: Handle, record: Omit<VolumeRecord, 'format' | 'complete'>, known: boolean): void {
  const { host, config } = session
  host.files.makeDirectory(volumeStateDirectory(config.stateDir, record.volume))
  const journal = openJournal(session, record.volume, known)
  try {
    writeVolumeRecord(host, config.stateDir, { ...record, complete: false })
    noteWalk(session, own(host.inodes, tree, { group: record.group, access: record.groupAccess }, journal))
  } finally {
    journal.close()
  }
  writeVolumeRecord(host, config.stateDir, { ...record, complete: true })
}

/** @throws {Refusal} naming the mount that stands in the way */
export function refuseOthers(session: Session, order: Omit<OwnOrder, 'restoreOnUnmount'>, device: number): void {
  for (const other of liveMounts(session, order.directory)) {
    if (other.volume === order.volume && other.device !== device) {
      throw new Refusal(
        `${order.source} and ${other.source} are two file systems with one identity (a copied disk or image?), so their records could not be told apart: give one a new UUID`,
      )
    }
    if (!shows(other, order) || other.walkGroup < 0 || other.walkGroup === order.group) continue
    throw new Refusal(
      `the volume belongs to group ${other.walkGroup} while pod ${other.pod || '(unnamed)'} uses ${other.source} (${other.directory}), so group ${order.group} cannot have it: ` +
        'give both pods the same fsGroup, or wait until that pod is gone',
    )
  }
}
