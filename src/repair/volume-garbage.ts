import { dirname, normalize } from 'node:path'
import type { FaultCode } from '../errors/entries/index.ts'
import { renderFault } from '../errors/fault.ts'
import { findFaultCode, Refusal, UnknownFormatRefusal } from '../errors/refusal.ts'
import { walkVolume } from '../fsgroup/walk-volume.ts'
import { deferHandleClose, getErrno } from '../kernel/host.ts'
import { createUnresponsiveFault, isLocalPath, type PathLookups } from '../kernel/mount-table/responsiveness.ts'
import { locateVolume } from '../state/find-volume.ts'
import { forgetVolumeRecords } from '../state/forget.ts'
import { hasVolumeWalker, isVolumeBusy } from '../state/lock-holders.ts'
import { removeTransientRecordFiles, tryAcquireRecordLock } from '../state/locks.ts'
import { listRecordedMounts } from '../state/mount-record.ts'
import { reservationRecords } from '../state/process-records.ts'
import { JOURNAL_FILES, locateVolumeRecords, RECORD_FILE, TRANSIENT_FILES } from '../state/record-directories.ts'
import type { Session } from '../state/session.ts'
import { explainOtherDisk } from '../state/volume-disk.ts'
import { isTextVolumeId, parseRootVolumeId } from '../state/volume-id.ts'
import { resolveVolumeIdentity } from '../state/volume-identity.ts'
import { hasVolumeJournal, openJournal, openJournalForReading } from '../state/volume-journal.ts'
import { explainVolumeAbsence, findVolumeNameNotice } from '../state/volume-notices.ts'
import { explainUnrestoredInodes, type VolumeRecord, volumeRecords } from '../state/volume-record.ts'
import { openNodeSourceWithLookups } from '../volume/kind/source-path.ts'
import { UnresponsiveRefusal } from '../worker/isolated.ts'

/** An entry of the state directory, and the action for it. */
export interface GarbageItem {
  kind: 'mount record' | 'lock' | 'volume' | 'import' | 'reservation' | 'stage' | 'container'
  /** A mount directory, a volume's id, a stage, a container's id, or the path of a record directory without a complete name. */
  name: string
  /** A dry run reports the action that would be done. */
  action: 'removed' | 'kept' | 'failed'
  reason: string
  code?: FaultCode
}

export interface GarbageRequest {
  isDry: boolean
  /** The volume whose record is removed on request; its directory does not exist. */
  forget: string | undefined
}

/** The action for an item, with the reason. */
export type GarbageFate = Pick<GarbageItem, 'action' | 'reason' | 'code'>

export const IN_PROGRESS_FATE: GarbageFate = { action: 'kept', reason: 'a call is at work on it' }
export const INTERRUPTED_CALL_FATE: GarbageFate = { action: 'removed', reason: 'an interrupted call left it' }

/** Removes the records of a volume that no mount or restore needs. Removes leftovers of interrupted calls in any case. */
export async function collectVolumeGarbage(
  session: Session,
  volume: string,
  request: GarbageRequest,
  lookups: PathLookups,
): Promise<GarbageItem[]> {
  const inProgress: GarbageItem = { kind: 'volume', name: volume, ...IN_PROGRESS_FATE }
  if (request.isDry) {
    if (isVolumeBusy(session, volume)) return [inProgress]
    return toVolumeGarbageItems(session, volume, await judgeVolumeGarbage(session, volume, request, lookups))
  }
  const place = locateVolumeRecords(session, volume)
  using lock = tryAcquireRecordLock(session, place)
  if (lock === undefined) return [inProgress]
  // Under the lock, a call that uses the volume has either recorded its mount or will find no record.
  const judged = await judgeVolumeGarbage(session, volume, request, lookups)
  const fate = judged.action === 'kept' ? await pruneKeptJournal(session, volume, request, { judged, lookups }) : judged
  const items = toVolumeGarbageItems(session, volume, fate)
  // A walker whose call gave up may still use the journal.
  if (hasVolumeWalker(session, volume)) return items
  removeTransientRecordFiles(session, place)
  if (fate.action === 'removed') forgetVolumeRecords(session, volume)
  return items
}

/** Prunes the journal of a volume whose records stay. An unusable journal only causes a warning here. */
async function pruneKeptJournal(
  session: Session,
  volume: string,
  request: GarbageRequest,
  { judged, lookups }: { judged: GarbageFate; lookups: PathLookups },
): Promise<GarbageFate> {
  try {
    if (!(await pruneVolumeJournal(session, volume, lookups))) return judged
  } catch (error) {
    if (!(error instanceof Refusal) || findFaultCode(error) === 'disk-errors') throw error
    if (error instanceof UnresponsiveRefusal)
      return keepItem(`${judged.reason}; what is gone from it stays recorded: ${error.message}`)
    session.warn(error.message, findFaultCode(error) ?? 'records-kept')
    return judged
  }
  const now = await judgeVolumeGarbage(session, volume, request, lookups)
  return now.action === 'kept' ? keepItem(`${now.reason}; what is gone from it was forgotten`) : now
}

function toVolumeGarbageItems(session: Session, volume: string, fate: GarbageFate): GarbageItem[] {
  const item: GarbageItem = { kind: 'volume', name: volume, ...fate }
  const { record: reservation } = reservationRecords.find(session, volume)
  if (fate.action === 'removed' || !reservation) return [item]
  return [{ kind: 'reservation', name: volume, ...INTERRUPTED_CALL_FATE }, item]
}

/** Other files in the directory belong to users, and are kept. */
const RECORD_DIRECTORY_FILES: ReadonlySet<string> = new Set([RECORD_FILE, ...JOURNAL_FILES, ...TRANSIENT_FILES])

async function judgeVolumeGarbage(
  session: Session,
  volume: string,
  { forget, isDry }: GarbageRequest,
  lookups: PathLookups,
): Promise<GarbageFate> {
  const mounts = listRecordedMounts(session)
  const user = mounts.find(({ record }) => record?.volume === volume && record.ended === undefined)
  if (user) return { action: 'kept', reason: `it is mounted at ${user.directory}` }
  const unread = mounts.find((mount) => mount.problem)?.problem
  const unneeded = (reason: string): GarbageFate =>
    unread ? keepItem(`a mount may need it: ${unread.message}`) : { action: 'removed', reason }
  const { record, problem } = volumeRecords.find(session, volume)
  if (problem instanceof UnknownFormatRefusal) return keepItem(problem.message)
  const holds = hasJournalEntries(session, volume)
  if (holds instanceof UnknownFormatRefusal) return keepItem(holds.message)
  if (volume === forget) return unneeded('its record is removed as requested')
  if (problem !== undefined)
    return keepItem('its record cannot be read: "modekeep restore DIR", with its directory, puts it back')
  if (holds instanceof Refusal) return keepItem(holds.message)
  if (record === undefined && holds)
    return keepItem(
      'its journal has records, but its path is not recorded: "modekeep restore DIR", with its directory, puts it back',
    )
  if (record === undefined) {
    const foreign = session.host.files
      .list(locateVolumeRecords(session, volume).path)
      .find((name) => !RECORD_DIRECTORY_FILES.has(name))
    return foreign === undefined
      ? unneeded('nothing is recorded of it any more')
      : keepItem(`nothing is recorded of it, but its directory has ${foreign}, which is not modekeep's`)
  }
  const { source, group, left, restorePending } = record
  if (left !== undefined && !holds) return unneeded(`${source} was put back, and nothing is recorded of it any more`)
  const isSwapped = await isVolumeSwappedAway(session, record, lookups, isDry)
  if (isSwapped === 'unknown') return keepItem(renderFault(createUnresponsiveFault(source, 'call this again')))
  if (isSwapped && restorePending)
    return keepItem(
      `its restore is pending, but ${source} is deleted: "modekeep gc --forget ${volume}" removes its record`,
    )
  if (isSwapped) return unneeded(`${source} was deleted when the symlink that led to it was swapped`)
  const notice = await findVolumeNameNotice(session, record, lookups)
  if (notice !== undefined && notice.state !== 'used') return keepItem(notice.text)
  const way = `"modekeep restore ${volume}"`
  if ((await locateVolume(session, volume, lookups, true)) === undefined) {
    const { text, alternative } = await explainVolumeAbsence(session, volume, source, lookups)
    return keepItem(`${restorePending ? 'its restore is pending: ' : ''}${text}, then ${way}; ${alternative}`)
  }
  if (restorePending) return keepItem(`the restore of ${source} is pending: ${way}`)
  const kept = explainUnrestoredInodes(record)
  if (kept !== undefined) return keepItem(`${source} was put back, but ${kept}`)
  if (left !== undefined)
    return keepItem(
      `${source} was put back; of what is not in it now "modekeep gc --forget ${volume}" removes the record`,
    )
  return keepItem(`${source} was walked for group ${group}: ${way} puts it back`)
}

const keepItem = (reason: string): GarbageFate => ({ action: 'kept', reason, code: 'records-kept' })

/** Whether a journal has an entry to restore; returns the refusal if it cannot be read. */
function hasJournalEntries(session: Session, volume: string): boolean | Refusal {
  try {
    using journal = openJournalForReading(session, volume, false)
    return journal !== undefined && !journal.isEmpty()
  } catch (error) {
    if (error instanceof Refusal) return error
    throw error
  }
}

/**
 * Whether an atomic writer or git-sync deleted the volume: a link led from the requested path to a directory that no longer
 * exists, in a directory of the same file system that does. A directory that was reached without a link, or that contained both
 * paths, may have been moved and may return. The result is unknown while a server does not respond.
 */
async function isVolumeSwappedAway(
  session: Session,
  { asked, source, volume }: VolumeRecord,
  lookups: PathLookups,
  isDry: boolean,
): Promise<boolean | 'unknown'> {
  if (asked === undefined || normalize(asked) === source) return false
  const place = await locateVolume(session, volume, lookups)
  if (place !== undefined) return place.isSilent && 'unknown'
  const { inodes } = session.host
  const fork = findCommonDirectory(normalize(asked), source)
  for (let above = dirname(source); above.length >= fork.length; above = dirname(above)) {
    try {
      const handle = await lookups.open(above)
      if (handle === undefined) return 'unknown'
      using _ = deferHandleClose(inodes, handle)
      const ids = [inodes.fileSystemId(handle), inodes.formerFileSystemId(handle)]
      const isDeleted =
        ids.includes(parseRootVolumeId(volume)?.fileSystem ?? '') &&
        explainOtherDisk(session, volume, handle) === undefined
      // A power cut would bring back a directory whose deletion its disk does not have yet.
      if (isDeleted && !isDry) inodes.syncFileSystem(handle)
      return isDeleted
    } catch (error) {
      if (getErrno(error) !== 'ENOENT') return false
    }
  }
  return false
}

/** Returns the deepest common directory of both paths; '' for the root. */
function findCommonDirectory(one: string, other: string): string {
  const [parts, others] = [one.split('/'), other.split('/')]
  const parted = parts.findIndex((part, index) => part !== others[index])
  return parts.slice(0, parted < 0 ? parts.length : parted).join('/')
}

/**
 * Removes the entries of deleted inodes from the journal of a volume, if the journal has grown large or the volume was
 * restored. The volume must be found and not change during the walk. Must be called under the volume's lock.
 * @returns whether the journal was pruned
 * @throws {Refusal} if the journal cannot be used; {UnresponsiveRefusal} if a directory of the volume is kept locked
 */
export async function pruneVolumeJournal(session: Session, volume: string, lookups: PathLookups): Promise<boolean> {
  const { host } = session
  // A server or a daemon may stop responding during the walk.
  if (isTextVolumeId(volume) || !hasVolumeJournal(session, volume)) return false
  // This process would wait for an unresponsive source. Walks prune the journals of such volumes.
  const { source, left } = volumeRecords.readUnlessDamaged(session, volume) ?? {}
  if (source !== undefined && !isLocalPath(host, source)) return false
  // Entries that a restore had to keep are removed once their inodes are deleted.
  const isDue = left !== undefined || isJournalOvergrown(session, volume)
  const place = isDue ? await locateVolume(session, volume, lookups) : undefined
  if (place === undefined || !isLocalPath(host, place.path)) return false
  const { handle, stat } = await openNodeSourceWithLookups(lookups, host, place.path)
  using _ = deferHandleClose(host.inodes, handle)
  if (resolveVolumeIdentity(session, handle, stat) !== volume || explainOtherDisk(session, volume, handle)) return false
  // The clone excludes mounts below the volume, so they hide no inode.
  const tree = host.mounts.cloneTree(handle)
  using _tree = deferHandleClose(host.inodes, tree)
  const about = { volume, source: place.path, known: true, isDisk: false }
  // The notes of one volume's walk must not appear as the call's.
  const quiet = { ...session, note: () => {} }
  const { isPruned = false } = await walkVolume(quiet, tree, about, { do: 'prune' }, () => {})
  return isPruned
}

function isJournalOvergrown(session: Session, volume: string): boolean {
  using journal = openJournal(session, volume, false)
  return journal.isOvergrown(0)
}
