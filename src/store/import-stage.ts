import { retryUntilDefined } from '../host/back-off.ts'
import { errorCode, type Lock } from '../host/host.ts'
import { type JournalCopy, writeJournal } from '../ownership/journal/copy.ts'
import { quotaOf } from './journal-room.ts'
import { releasePlace, removeTransient } from './leftovers.ts'
import { isPlaceBusy, tryLockPlace } from './locks.ts'
import {
  importPlace,
  JOURNAL_FILE,
  JOURNAL_FILES,
  listImports,
  type Place,
  RECORD_FILE,
  volumePlace,
} from './places.ts'
import { orWarn, type Session } from './session.ts'
import { type VolumeRecord, volumeRecords } from './volume-record.ts'

/** A walk may take hours, and a person waits. */
const PATIENCE_MS = 5000

/**
 * The place of a volume that nothing is recorded of here, put together beside it, with a lock of its own. One rename(2)
 * makes it the volume's, lock and all: who dies before that leaves nothing of the volume, who dies after it has all.
 */
export class ImportStage implements Disposable {
  readonly #session: Session
  readonly #volume: string
  readonly #place: Place
  readonly #lock: Lock
  #isMoved = false

  private constructor(session: Session, volume: string, place: Place, lock: Lock) {
    this.#session = session
    this.#volume = volume
    this.#place = place
    this.#lock = lock
  }

  /** Undefined while another import of the volume is under way. What an interrupted one left is removed. */
  static tryOpen(session: Session, volume: string): ImportStage | undefined {
    const place = importPlace(session, volume)
    const lock = tryLockPlace(session, place)
    if (lock === undefined) return undefined
    const stage = new ImportStage(session, volume, place, lock)
    removeFiles(session, place)
    return stage
  }

  /** @throws {Refusal} where the disk is full, the journal larger than "stateQuota", or all journals would be too large */
  async write(record: VolumeRecord | undefined, journal: JournalCopy): Promise<void> {
    const { path } = this.#place
    const quota = quotaOf(this.#session, true)
    await writeJournal(this.#session.host, `${path}/${JOURNAL_FILE}`, this.#volume, journal, quota)
    if (record) volumeRecords.write(this.#session, record, path)
  }

  /**
   * Makes it the volume's place, under the volume's lock.
   * @returns 'busy' where a call is at work on the volume for long, 'recorded' where something is recorded of it
   */
  publish(): Promise<'published' | 'busy' | 'recorded'> {
    const until = Date.now() + PATIENCE_MS
    return retryUntilDefined(() => this.#tryPublish() ?? (Date.now() > until ? 'busy' : undefined))
  }

  #tryPublish(): 'published' | 'recorded' | undefined {
    const session = this.#session
    const place = volumePlace(session, this.#volume)
    const lock = tryLockPlace(session, place)
    if (lock === undefined) return undefined
    // The lock's file cannot stay: nothing may be where a directory is moved to.
    if (!releasePlace(session, place, lock)) return 'recorded'
    try {
      session.host.files.moveDirectory(this.#place.path, place.path)
    } catch (error) {
      // Another call has made the volume's place since, and has its lock.
      if (errorCode(error) === 'ENOTEMPTY' || errorCode(error) === 'EEXIST') return undefined
      throw error
    }
    this.#isMoved = true
    return 'published'
  }

  /** Nothing stays of what did not become the volume's. */
  [Symbol.dispose](): void {
    if (this.#isMoved) this.#lock.release()
    else orWarn(this.#session, 'could not remove an import', () => removePlace(this.#session, this.#place, this.#lock))
  }
}

/** Removes what interrupted imports have left. What fails is a warning: the next call tries again. */
export function removeImports(session: Session): void {
  for (const volume of listImports(session))
    orWarn(session, 'could not remove an import', () => removeImport(session, volume))
}

/** @returns false while one is under way */
export function removeImport(session: Session, volume: string): boolean {
  const place = importPlace(session, volume)
  const lock = tryLockPlace(session, place)
  if (lock === undefined) return false
  removePlace(session, place, lock)
  return true
}

export function isImportBusy(session: Session, volume: string): boolean {
  return isPlaceBusy(session, importPlace(session, volume))
}

function removePlace(session: Session, place: Place, lock: Lock): void {
  let isEmpty = false
  try {
    removeFiles(session, place)
    isEmpty = true
  } finally {
    lock.release(isEmpty)
  }
  session.host.files.removeEmpty(place.path, place.top)
}

function removeFiles(session: Session, place: Place): void {
  for (const name of [RECORD_FILE, ...JOURNAL_FILES]) session.host.files.remove(`${place.path}/${name}`)
  removeTransient(session, place)
}
