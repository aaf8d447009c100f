import { tolerateSystemErrors } from '../host/file-error.ts'
import { type Backing, deferClose, type Handle } from '../host/host.ts'
import { Refusal } from '../refusal/refusal.ts'
import type { Store } from './places.ts'
import { hasJournal, openJournalForReading } from './volume-journal.ts'
import { isNamedByDevice, type VolumeRecord, volumeRecords } from './volume-record.ts'

/** Disk of a volume, as its records have it. It has at least one identity. */
type Disk = NonNullable<VolumeRecord['disk']>

/** A disk as the kernel reports it now, with the identities that earlier versions may have recorded of it. */
interface DiskNow extends Disk {
  former?: string[] | undefined
}

/** Identity of the disk that has the records. They always apply to that disk: a clone of the node has both. */
const WITH_THE_RECORDS = 'with the records'

/** Returns the disk of a handle's file system; undefined if the kernel does not report it. */
export function diskUnder(store: Store, root: Handle): DiskNow | undefined {
  const backing = store.host.blocks.backingOf(root)
  const disk = known(backing)
  if (backing.place !== placeOfRecords(store)) return disk
  const shown = disk?.shown ?? 'the file system'
  const identities = [...(disk?.identities ?? []), WITH_THE_RECORDS]
  return { shown: `${shown} that has the records`, identities, former: disk?.former }
}

function known({ shown, identities, former }: Backing): DiskNow | undefined {
  return identities.length === 0 ? undefined : { shown, identities, former }
}

function placeOfRecords({ host, config }: Store): string | undefined {
  return tolerateSystemErrors(() => {
    const directory = host.inodes.openTrusted(config.stateDir)
    using _ = deferClose(host.inodes, directory)
    return host.blocks.backingOf(directory).place
  })
}

/**
 * Returns the disk of a volume at its last walk. If the record is missing or damaged, the journal has it: the journal
 * outlives a restore that left inodes unrestored. Returns undefined if neither has it.
 */
function recordedDisk(store: Store, volume: string): Disk | undefined {
  const { record } = volumeRecords.find(store, volume)
  return record ? record.disk : journalsDisk(store, volume)
}

/** Returns undefined for an unreadable journal. A call that needs the journal reports the problem. */
function journalsDisk(store: Store, volume: string): Disk | undefined {
  if (!hasJournal(store, volume)) return undefined
  try {
    using journal = openJournalForReading(store, volume, false)
    // An empty journal has no records of any disk.
    return journal?.disk === undefined || journal.isEmpty() ? undefined : diskOf(journal.disk)
  } catch (error) {
    if (error instanceof Refusal) return undefined
    throw error
  }
}

/** Formats a disk for the journal: one value a line, because no value has line breaks. */
export function textOfDisk({ shown, identities }: Disk): string {
  return [shown, ...identities].join('\n')
}

/** Parses the text of a disk in a journal. */
export function diskOf(text: string): Disk {
  const [shown = '', ...identities] = text.split('\n')
  return { shown, identities }
}

/** Explains why a disk is not the recorded one; returns undefined if it may be. */
export function difference(volume: string, recorded: Disk | undefined, now: DiskNow | undefined): string | undefined {
  if (recorded === undefined || now === undefined || isSame(recorded, now)) return undefined
  return (
    `the records of volume ${volume} are of ${recorded.shown}, and this is ${now.shown}: ` +
    'a copy, or a forged one, as its content has the same name'
  )
}

function isSame(recorded: Disk, { identities, former = [] }: DiskNow): boolean {
  return recorded.identities.some((identity) => identities.includes(identity) || former.includes(identity))
}

/** Compares the disk in a volume's records with the disk that a file system lies on now. */
export function compareDisk(store: Store, volume: string, now: DiskNow | undefined): 'same' | 'unknown' | 'other' {
  const recorded = recordedDisk(store, volume)
  if (recorded === undefined || now === undefined) return 'unknown'
  return isSame(recorded, now) ? 'same' : 'other'
}

/** Returns a disk without the identities that are not recorded any more. */
export function toRecordedDisk(disk: DiskNow | undefined): Disk | undefined {
  return disk && { shown: disk.shown, identities: disk.identities }
}

/** Explains why a volume's records are of another disk than a handle's; returns undefined if they may be of it. */
export function otherDisk(store: Store, volume: string, root: Handle): string | undefined {
  const recorded = recordedDisk(store, volume)
  return recorded && difference(volume, recorded, diskUnder(store, root))
}

/** Explains why a volume's records are of another disk than a device or an image that would be mounted. */
export function otherSource(store: Store, volume: string, source: Handle): string | undefined {
  const recorded = recordedDisk(store, volume)
  return recorded && difference(volume, recorded, known(store.host.blocks.asBacking(source)))
}

/** @throws {Refusal} if a volume's records are of another disk than the one of a handle's file system */
export function refuseOtherDisk(store: Store, volume: string, root: Handle): void {
  refuse(volume, otherDisk(store, volume, root))
}

/**
 * Returns the disk that is to be recorded for a volume. Call it under the volume's lock.
 * @returns undefined if the disk is unknown
 * @throws {Refusal} as `refuseOtherDisk`
 */
export function sameDisk(store: Store, volume: string, root: Handle): Disk | undefined {
  const [recorded, now] = [recordedDisk(store, volume), diskUnder(store, root)]
  refuse(volume, difference(volume, recorded, now))
  return toRecordedDisk(now) ?? recorded
}

function refuse(volume: string, other: string | undefined): void {
  if (other === undefined) return
  const way = isNamedByDevice(volume) ? 'put the other one back' : 'put the other one back, or give this one a new UUID'
  throw new Refusal(
    `${other}: ${way}; "modekeep restore DIR --force" takes the records for this one's, "modekeep gc --forget ${volume}" gives them up`,
  )
}
