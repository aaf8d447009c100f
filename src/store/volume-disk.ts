import { tolerateSystemErrors } from '../host/file-error.ts'
import { type Backing, deferClose, type Handle } from '../host/host.ts'
import { Refusal } from '../refusal/refusal.ts'
import type { Store } from './places.ts'
import { hasJournal, openJournalForReading } from './volume-journal.ts'
import { isNamedByDevice, type VolumeRecord, volumeRecords } from './volume-record.ts'

/** What a volume lies on, as its records keep it: never empty. */
type Disk = NonNullable<VolumeRecord['disk']>

/** A disk as the kernel reports it now, with the identities that earlier versions may have recorded of it. */
interface DiskNow extends Disk {
  former?: string[] | undefined
}

/** Records go with the disk that they are on, whatever becomes of that: a node that is cloned has both. */
const WITH_THE_RECORDS = 'with the records'

/** What the file system of a handle lies on; undefined where the kernel does not tell. */
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
 * What a volume lay on when it was walked last. The journal tells where the record is gone or damaged: it outlives a
 * restore that could not put all back. Undefined where neither tells.
 */
function recordedDisk(store: Store, volume: string): Disk | undefined {
  const { record } = volumeRecords.find(store, volume)
  return record ? record.disk : journalsDisk(store, volume)
}

/** One that cannot be read is of no use to anybody, and whoever needs it says so. */
function journalsDisk(store: Store, volume: string): Disk | undefined {
  if (!hasJournal(store, volume)) return undefined
  try {
    using journal = openJournalForReading(store, volume, false)
    // One that is left with nothing in it is of nothing.
    return journal?.disk === undefined || journal.isEmpty() ? undefined : diskOf(journal.disk)
  } catch (error) {
    if (error instanceof Refusal) return undefined
    throw error
  }
}

/** As a journal keeps it: lines, as none of what they say has line breaks. */
export function textOfDisk({ shown, identities }: Disk): string {
  return [shown, ...identities].join('\n')
}

/** Undoes that. */
export function diskOf(text: string): Disk {
  const [shown = '', ...identities] = text.split('\n')
  return { shown, identities }
}

/** Why it is another disk than the one on record; undefined where it may be that. */
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

/** A disk without the identities that are not recorded any more. */
export function toRecordedDisk(disk: DiskNow | undefined): Disk | undefined {
  return disk && { shown: disk.shown, identities: disk.identities }
}

/** Why a volume's records are of another disk than the file system of a handle lies on; undefined where they may be of it. */
export function otherDisk(store: Store, volume: string, root: Handle): string | undefined {
  const recorded = recordedDisk(store, volume)
  return recorded && difference(volume, recorded, diskUnder(store, root))
}

/** The same of a device or an image that would be mounted. */
export function otherSource(store: Store, volume: string, source: Handle): string | undefined {
  const recorded = recordedDisk(store, volume)
  return recorded && difference(volume, recorded, known(store.host.blocks.asBacking(source)))
}

/** @throws {Refusal} where a volume's records are of another disk than the file system of a handle lies on */
export function refuseOtherDisk(store: Store, volume: string, root: Handle): void {
  refuse(volume, otherDisk(store, volume, root))
}

/**
 * What is to be recorded of the disk that a volume lies on now. Call it under the volume's lock.
 * @returns undefined where nothing is known
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
