import type { Handle, Lock } from '../host/host.ts'
import type { TreeLocation } from '../mount-table/tree-location.ts'
import { type OwnOrder, rootMatches } from '../ownership/inode/policy.ts'
import type { WalkReport } from '../ownership/walk/report.ts'
import type { WalkOptions } from '../ownership/walks.ts'
import { own } from '../ownership/walks.ts'
import { Refusal } from '../refusal/refusal.ts'
import { unlessDamaged } from '../store/json-record.ts'
import type { MountRecord } from '../store/mount-record.ts'
import { volumeStateDirectory } from '../store/paths.ts'
import type { Reservation } from '../store/reservation-record.ts'
import type { Session } from '../store/session.ts'
import { hasJournal, noteWalk, openJournal, walkWith } from '../store/volume-journal.ts'
import { hasVolumeRecord, readVolumeRecord, type VolumeRecord, writeVolumeRecord } from '../store/volume-record.ts'
import { holders, type Others, othersWith } from './holders.ts'
import { reserveVolume } from './reserve.ts'

export interface VolumeOrder extends OwnOrder {
  volume: string
  policy: 'OnRootMismatch' | 'Always'
  source: string
  /** What a pod named, where that is a part of a source. */
  asked?: string | undefined
  /** Where it lies, if the source's path does not tell. */
  location?: TreeLocation | undefined
  /** The mount's; undefined where none is made. */
  directory?: string
  pod?: string | undefined
  restoreOnUnmount: boolean
}

export interface Owned {
  lock: Lock
  report: WalkReport | undefined
}

/**
 * Gives a volume to a group by walking it, unless that is done already. The lock must be held until the mount is
 * attached: only then do others see that the volume has a holder.
 * @returns report: what the walk did; undefined where the root has the group already
 * @throws {Refusal} when another group's mount holds the volume or a part of it
 */
export async function ownVolume(session: Session, tree: Handle, order: VolumeOrder): Promise<Owned> {
  const { host, config } = session
  const { volume, source, location, group, access, pod, directory } = order
  const { device } = host.inodes.stat(tree)
  const wanted = { volume, source, location, group, pod, directory }
  const lock = await reserveVolume(session, wanted, directory, (others) => refuseAny(others, order, device))
  try {
    const record = unlessDamaged(() => readVolumeRecord(host, config.stateDir, order.volume))
    const restorePending = order.restoreOnUnmount || (record?.restorePending ?? false)
    if (!needsWalk(session, tree, order)) {
      session.note({ ownership: 'the root has the group already: not walked' })
      if (record && record.restorePending !== restorePending) {
        writeVolumeRecord(host, config.stateDir, { ...record, restorePending })
      }
      return { lock, report: undefined }
    }
    const known = hasVolumeRecord(host, config.stateDir, volume)
    if (known && record === undefined) {
      session.warn(`the record of volume ${volume} is damaged: walked anew; a restore that was pending is forgotten`)
    }
    const next = { volume, source, asked: order.asked, group, groupAccess: access, restorePending }
    return { lock, report: await walk(session, tree, next, known) }
  } catch (error) {
    lock.release()
    throw error
  }
}

type Asked = Omit<VolumeOrder, 'restoreOnUnmount'>

/** False where the policy lets the root speak for the tree: it shows what a walk leaves, and no walk was left half way. */
export function needsWalk(session: Session, tree: Handle, order: Asked): boolean {
  if (order.policy === 'Always') return true
  const { host, config } = session
  const record = unlessDamaged(() => readVolumeRecord(host, config.stateDir, order.volume))
  const wasWalked = hasJournal(session, order.volume) || hasVolumeRecord(host, config.stateDir, order.volume)
  const finished = record ? isFinished(record, order) : !wasWalked
  return !finished || !rootMatches(session.host.inodes.stat(tree), order)
}

/** A walk that granted has kept too. */
function isFinished({ complete, group, groupAccess }: VolumeRecord, order: OwnOrder): boolean {
  return complete && group === order.group && (groupAccess === order.access || groupAccess === 'grant')
}

type Unfinished = Omit<VolumeRecord, 'complete'>

async function walk(session: Session, tree: Handle, record: Unfinished, known: boolean): Promise<WalkReport> {
  const { host, config } = session
  host.files.makeDirectory(volumeStateDirectory(config.stateDir, record.volume))
  let report: WalkReport
  const journal = openJournal(session, record.volume, known)
  try {
    writeVolumeRecord(host, config.stateDir, { ...record, complete: false })
    const order = { group: record.group, access: record.groupAccess }
    const walking = (options: WalkOptions) => own(host.inodes, tree, order, journal, options)
    report = await walkWith(session, record.volume, walking)
  } finally {
    journal.close()
  }
  noteWalk(session, report)
  // What was moved while it was walked was not seen to its end: the next mount walks again.
  const complete = report.left['moved during the walk'] === undefined
  writeVolumeRecord(host, config.stateDir, { ...record, complete })
  return report
}

/** @throws {Refusal} naming the mount that stands in the way, there or being made */
export function refuseOthers(session: Session, order: Asked, device: number): void {
  refuseAny(othersWith(session, order, order.directory), order, device)
}

function refuseAny(others: Others, { volume, source, group }: Asked, device: number): void {
  // Of one that was never finished no device is known.
  const copy = others.mounts.find(
    (other) => other.volume === volume && other.mounted !== undefined && other.mounted.device !== device,
  )
  if (copy) {
    throw new Refusal(
      `${source} and ${copy.source} are two file systems with one identity (a copied disk or image?), so their records could not be told apart: give one a new UUID`,
    )
  }
  const other = holders(others).find((holder) => ![undefined, group].includes(groupOnDisk(holder)))
  if (other === undefined) return
  throw new Refusal(
    `the volume belongs to group ${groupOnDisk(other)} while pod ${other.pod ?? '(unnamed)'} uses ${other.source} (${other.directory}), so group ${group} cannot have it: ` +
      'use ownership "idmap", give both pods the same fsGroup, or wait until that pod is gone',
  )
}

/** The group that a mount has given its volume, or that its mapping expects there; undefined where it relies on none. */
export function groupOnDisk(holder: MountRecord | Reservation): number | undefined {
  if (!('given' in holder)) return holder.group
  const { given } = holder
  return given.by === 'walk' ? given.group : given.by === 'idmap' ? given.from : undefined
}
