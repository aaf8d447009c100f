import { Refusal } from '../errors/refusal.ts'
import { type BackingStorage, deferHandleClose, type Handle } from '../kernel/host.ts'
import { tolerateSystemErrors } from '../kernel/system-error.ts'
import type { Store } from './record-directories.ts'
import { isVolumeNamedByDevice } from './volume-id.ts'
import { hasVolumeJournal, openJournalForReading } from './volume-journal.ts'
import { type VolumeRecord, volumeRecords } from './volume-record.ts'

/** Disk of a volume, as its records have it. It has at least one identity. */
type RecordedDisk = NonNullable<VolumeRecord['disk']>

/** A disk as the kernel reports it now, with the identities that earlier versions may have recorded of it. */
interface CurrentDisk extends RecordedDisk {
  former?: string[] | undefined
}

/** Identity of the disk that has the records. They always apply to that disk: a clone of the node has both. */
const RECORDS_DISK_IDENTITY = 'with the records'

/** Returns the disk of a handle's file system; undefined if the kernel does not report it. */
export function readBackingDisk(store: Store, root: Handle): CurrentDisk | undefined {
  const backing = store.host.blocks.backingOf(root)
  const disk = createCurrentDisk(backing)
  if (backing.place !== readStateDirBackingPlace(store)) return disk
  const shown = disk?.shown ?? 'the file system'
  const identities = [...(disk?.identities ?? []), RECORDS_DISK_IDENTITY]
  return { shown: `${shown} that has the records`, identities, former: disk?.former }
}

function createCurrentDisk({ shown, identities, former }: BackingStorage): CurrentDisk | undefined {
  return identities.length === 0 ? undefined : { shown, identities, former }
}

function readStateDirBackingPlace({ host, config }: Store): string | undefined {
  return tolerateSystemErrors(() => {
    const directory = host.inodes.openTrusted(config.stateDir)
    using _ = deferHandleClose(host.inodes, directory)
    return host.blocks.backingOf(directory).place
  })
}

/**
 * Returns the disk of a volume at its last walk. If the record is missing or damaged, the journal has it: the journal
 * outlives a restore that left inodes unrestored. Returns undefined if neither has it.
 */
function findRecordedDisk(store: Store, volume: string): RecordedDisk | undefined {
  const { record } = volumeRecords.find(store, volume)
  return record ? record.disk : readJournalDisk(store, volume)
}

/** Returns undefined for an unreadable journal. A call that needs the journal reports the problem. */
function readJournalDisk(store: Store, volume: string): RecordedDisk | undefined {
  if (!hasVolumeJournal(store, volume)) return undefined
  try {
    using journal = openJournalForReading(store, volume, false)
    // An empty journal has no records of any disk.
    return journal?.disk === undefined || journal.isEmpty() ? undefined : parseJournalDisk(journal.disk)
  } catch (error) {
    if (error instanceof Refusal) return undefined
    throw error
  }
}

/** Formats a disk for the journal: one value a line, because no value has line breaks. */
export function formatJournalDisk({ shown, identities }: RecordedDisk): string {
  return [shown, ...identities].join('\n')
}

/** Parses the text of a disk in a journal. */
export function parseJournalDisk(text: string): RecordedDisk {
  const [shown = '', ...identities] = text.split('\n')
  return { shown, identities }
}

/** Explains why a disk is not the recorded one; returns undefined if it may be. */
export function explainDiskDifference(
  volume: string,
  recorded: RecordedDisk | undefined,
  now: CurrentDisk | undefined,
): string | undefined {
  if (recorded === undefined || now === undefined || isSameDisk(recorded, now)) return undefined
  return (
    `the records of volume ${volume} are of ${recorded.shown}, and this is ${now.shown}: ` +
    'a copy, or a forged one, as its content has the same name'
  )
}

function isSameDisk(recorded: RecordedDisk, { identities, former = [] }: CurrentDisk): boolean {
  return recorded.identities.some((identity) => identities.includes(identity) || former.includes(identity))
}

/** Compares the disk in a volume's records with the disk that a file system lies on now. */
export function compareWithRecordedDisk(
  store: Store,
  volume: string,
  now: CurrentDisk | undefined,
): 'same' | 'unknown' | 'other' {
  const recorded = findRecordedDisk(store, volume)
  if (recorded === undefined || now === undefined) return 'unknown'
  return isSameDisk(recorded, now) ? 'same' : 'other'
}

/** Returns a disk without the identities that are not recorded any more. */
export function toRecordedDisk(disk: CurrentDisk | undefined): RecordedDisk | undefined {
  return disk && { shown: disk.shown, identities: disk.identities }
}

/** Explains why a volume's records are of another disk than a handle's; returns undefined if they may be of it. */
export function explainOtherDisk(store: Store, volume: string, root: Handle): string | undefined {
  const recorded = findRecordedDisk(store, volume)
  return recorded && explainDiskDifference(volume, recorded, readBackingDisk(store, root))
}

/** Explains why a volume's records are of another disk than a device or an image that would be mounted. */
export function explainOtherSourceDisk(store: Store, volume: string, source: Handle): string | undefined {
  const recorded = findRecordedDisk(store, volume)
  return recorded && explainDiskDifference(volume, recorded, createCurrentDisk(store.host.blocks.asBacking(source)))
}

/** @throws {Refusal} if a volume's records are of another disk than the one of a handle's file system */
export function refuseOtherDisk(store: Store, volume: string, root: Handle): void {
  refuseDifferentDisk(volume, explainOtherDisk(store, volume, root))
}

/**
 * Returns the disk that is to be recorded for a volume. Call it under the volume's lock.
 * @returns undefined if the disk is unknown
 * @throws {Refusal} as `refuseOtherDisk`
 */
export function resolveDiskToRecord(store: Store, volume: string, root: Handle): RecordedDisk | undefined {
  const [recorded, now] = [findRecordedDisk(store, volume), readBackingDisk(store, root)]
  refuseDifferentDisk(volume, explainDiskDifference(volume, recorded, now))
  return toRecordedDisk(now) ?? recorded
}

function refuseDifferentDisk(volume: string, other: string | undefined): void {
  if (other === undefined) return
  const remedy = isVolumeNamedByDevice(volume)
    ? 'put the other one back'
    : 'put the other one back, or give this one a new UUID'
  throw Refusal.of(
    'identity-twice',
    other,
    `${remedy}; "modekeep restore DIR --force" takes the records for this one's, "modekeep gc --forget ${volume}" gives them up`,
  )
}
