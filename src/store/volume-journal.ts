import { JournalSnapshot } from '../ownership/journal/copy.ts'
import { Journal } from '../ownership/journal/journal.ts'
import { Refusal } from '../refusal/refusal.ts'
import { JOURNAL_FILE, type Store, volumePlace } from './places.ts'

/**
 * The journal of a volume. Call it under the volume's lock.
 * @param known a walk is recorded, so that there must be one; otherwise it is made if there is none
 * @param disk what the volume lies on, to be noted in it
 */
export function openJournal(store: Store, volume: string, known: boolean, disk?: string): Journal {
  return Journal.open(store.host, journalFile(store, volume), volume, known, disk)
}

/**
 * The journal of a volume, if it has one, for looking only. A walk may be writing to it meanwhile.
 * @param known a walk is recorded, so that there must be one
 * @throws {Refusal} where it is missing or cannot be used
 */
export function openJournalForReading(store: Store, volume: string, known: boolean): Journal | undefined {
  return isThere(store, volume, known)
    ? Journal.openForReading(store.host, journalFile(store, volume), volume, known)
    : undefined
}

/** All that the journal holds at one moment; otherwise the same. */
export function openJournalSnapshot(store: Store, volume: string, known: boolean): JournalSnapshot | undefined {
  return isThere(store, volume, known)
    ? new JournalSnapshot(store.host, journalFile(store, volume), volume, known)
    : undefined
}

function isThere(store: Store, volume: string, known: boolean): boolean {
  if (hasJournal(store, volume)) return true
  if (!known) return false
  const path = journalFile(store, volume)
  throw new Refusal(`the ownership journal ${path} is missing, although the volume was walked before`)
}

/** Without a record that can be read, it tells that the volume was walked. */
export function hasJournal(store: Store, volume: string): boolean {
  return store.host.files.list(volumePlace(store, volume).path).includes(JOURNAL_FILE)
}

/** Whether nothing is recorded of a volume. Call it under the volume's lock; `known` and errors as of `openJournal`. */
export function isJournalEmpty(store: Store, volume: string, known = false): boolean {
  using journal = openJournal(store, volume, known)
  return journal.isEmpty()
}

export function journalFile(store: Store, volume: string): string {
  return `${volumePlace(store, volume).path}/${JOURNAL_FILE}`
}
