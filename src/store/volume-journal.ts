import { JournalSnapshot } from '../ownership/journal/copy.ts'
import { Journal } from '../ownership/journal/journal.ts'
import { Refusal } from '../refusal/refusal.ts'
import { JOURNAL_FILE, locateVolumeRecords, type Store } from './record-directories.ts'

/**
 * Opens the journal of a volume. Call it under the volume's lock.
 * @param known a walk is recorded, so the journal must exist; otherwise a missing one is created
 * @param disk the volume's disk, to be recorded in the journal
 */
export function openJournal(store: Store, volume: string, known: boolean, disk?: string): Journal {
  return Journal.open(store.host, locateJournal(store, volume), volume, known, disk)
}

/**
 * Opens the journal of a volume for reading, if it has one. A walk may write to it concurrently.
 * @param known a walk is recorded, so the journal must exist
 * @throws {Refusal} if it is missing or cannot be used
 */
export function openJournalForReading(store: Store, volume: string, known: boolean): Journal | undefined {
  return hasRequiredJournal(store, volume, known)
    ? Journal.openForReading(store.host, locateJournal(store, volume), volume, known)
    : undefined
}

/** Opens a snapshot of the journal at one moment; parameters and errors are those of `openJournalForReading`. */
export function openJournalSnapshot(store: Store, volume: string, known: boolean): JournalSnapshot | undefined {
  return hasRequiredJournal(store, volume, known)
    ? new JournalSnapshot(store.host, locateJournal(store, volume), volume, known)
    : undefined
}

function hasRequiredJournal(store: Store, volume: string, known: boolean): boolean {
  if (hasJournal(store, volume)) return true
  if (!known) return false
  const path = locateJournal(store, volume)
  throw new Refusal(`the ownership journal ${path} is missing, although the volume was walked before`)
}

/** Returns whether the volume has a journal, which shows that it was walked even without a readable record. */
export function hasJournal(store: Store, volume: string): boolean {
  return store.host.files.list(locateVolumeRecords(store, volume).path).includes(JOURNAL_FILE)
}

/** Returns whether the journal has no records. Call it as `openJournal`, and under the volume's lock. */
export function isJournalEmpty(store: Store, volume: string, known = false): boolean {
  using journal = openJournal(store, volume, known)
  return journal.isEmpty()
}

export function locateJournal(store: Store, volume: string): string {
  return `${locateVolumeRecords(store, volume).path}/${JOURNAL_FILE}`
}
