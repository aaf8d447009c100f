import { getErrno, type Lock } from '../kernel/host.ts'
import { retryUntilDefined } from '../kernel/waiting.ts'
import { type JournalCopy, writeJournalCopy } from '../ownership/journal/copy.ts'
import { isRecordDirectoryBusy } from './lock-holders.ts'
import { releaseRecordLock, removeTransientRecordFiles, tryLockRecordDirectory } from './locks.ts'
import {
  JOURNAL_FILE,
  JOURNAL_FILES,
  listVolumesInImport,
  locateImportDirectory,
  locateVolumeRecords,
  RECORD_FILE,
  type RecordDirectory,
} from './record-directories.ts'
import { type Session, warnOnFailure } from './session.ts'
import { createJournalQuota } from './volume-journal.ts'
import { type VolumeRecord, volumeRecords } from './volume-record.ts'

/** Milliseconds that an import waits for the volume's lock: a walk may take hours, and an operator waits. */
const IMPORT_LOCK_TIMEOUT_MS = 5000

/**
 * Staging directory for the import of a volume that is not recorded on this node, with its own lock. One rename(2)
 * makes it the volume's record directory, lock included. A crash before that leaves no record of the volume; a crash
 * after it leaves the complete import.
 */
export class JournalImportStage implements Disposable {
  readonly #session: Session
  readonly #volume: string
  readonly #place: RecordDirectory
  readonly #lock: Lock
  #isMoved = false

  private constructor(session: Session, volume: string, place: RecordDirectory, lock: Lock) {
    this.#session = session
    this.#volume = volume
    this.#place = place
    this.#lock = lock
  }

  /** Returns undefined while another import of the volume runs. Removes the files of an interrupted import. */
  static tryOpen(session: Session, volume: string): JournalImportStage | undefined {
    const place = locateImportDirectory(session, volume)
    const lock = tryLockRecordDirectory(session, place)
    if (lock === undefined) return undefined
    const stage = new JournalImportStage(session, volume, place, lock)
    removeImportFiles(session, place)
    return stage
  }

  /** @throws {Refusal} if the disk is full, the journal exceeds "stateQuota", or all journals would be too large */
  async write(record: VolumeRecord | undefined, journal: JournalCopy): Promise<void> {
    const { path } = this.#place
    const quota = createJournalQuota(this.#session, true)
    await writeJournalCopy(this.#session.host, `${path}/${JOURNAL_FILE}`, this.#volume, journal, quota)
    if (record) volumeRecords.write(this.#session, record, { path: `${path}/${RECORD_FILE}` })
  }

  /**
   * Moves it to the volume's record directory, under the volume's lock.
   * @returns 'busy' if another call works on the volume for long, 'recorded' if the volume is recorded already
   */
  publish(): Promise<'published' | 'busy' | 'recorded'> {
    const until = Date.now() + IMPORT_LOCK_TIMEOUT_MS
    return retryUntilDefined(() => this.#tryPublish() ?? (Date.now() > until ? 'busy' : undefined))
  }

  #tryPublish(): 'published' | 'recorded' | undefined {
    const session = this.#session
    const place = locateVolumeRecords(session, this.#volume)
    const lock = tryLockRecordDirectory(session, place)
    if (lock === undefined) return undefined
    // The lock file is removed too, because rename(2) replaces only an empty directory.
    if (!releaseRecordLock(session, place, lock)) return 'recorded'
    try {
      session.host.files.moveDirectory(this.#place.path, place.path)
    } catch (error) {
      // Another call has created the volume's record directory since, and holds its lock.
      if (getErrno(error) === 'ENOTEMPTY' || getErrno(error) === 'EEXIST') return undefined
      throw error
    }
    this.#isMoved = true
    return 'published'
  }

  /** Removes the staging directory, unless it was published. */
  [Symbol.dispose](): void {
    if (this.#isMoved) this.#lock.release()
    else
      warnOnFailure(this.#session, 'could not remove an import', () =>
        removeImportStage(this.#session, this.#place, this.#lock),
      )
  }
}

/** Removes the files of interrupted imports. A failure is a warning, because the next call retries. */
export function removeInterruptedImports(session: Session): void {
  for (const volume of listVolumesInImport(session))
    warnOnFailure(session, 'could not remove an import', () => removeInterruptedImport(session, volume))
}

/** @returns false while an import of the volume runs */
export function removeInterruptedImport(session: Session, volume: string): boolean {
  const place = locateImportDirectory(session, volume)
  const lock = tryLockRecordDirectory(session, place)
  if (lock === undefined) return false
  removeImportStage(session, place, lock)
  return true
}

export function isImportBusy(session: Session, volume: string): boolean {
  return isRecordDirectoryBusy(session, locateImportDirectory(session, volume))
}

function removeImportStage(session: Session, place: RecordDirectory, lock: Lock): void {
  let isEmpty = false
  try {
    removeImportFiles(session, place)
    isEmpty = true
  } finally {
    lock.release(isEmpty)
  }
  session.host.files.removeEmpty(place.path, place.top)
}

function removeImportFiles(session: Session, place: RecordDirectory): void {
  for (const name of [RECORD_FILE, ...JOURNAL_FILES]) session.host.files.remove(`${place.path}/${name}`)
  removeTransientRecordFiles(session, place)
}
