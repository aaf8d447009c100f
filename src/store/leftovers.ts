import { retryUntilDefined } from '../host/back-off.ts'
import { withPath } from '../host/file-error.ts'
import type { Lock } from '../host/host.ts'
import { hasWalker, tryLockPlace } from './locks.ts'
import { walkTeller } from './others-walk.ts'
import {
  JOURNAL_FILE,
  LOCK_FILE,
  leftoverFiles,
  listMountPlaces,
  listVolumes,
  type Place,
  TRANSIENT_FILES,
  volumePlace,
} from './places.ts'
import { reservations } from './reservation-record.ts'
import { orWarn, type Session } from './session.ts'
import { refusingStuckHolder } from './stuck-holder.ts'
import { hasJournal, isJournalEmpty } from './volume-journal.ts'
import { volumeRecords } from './volume-record.ts'

// A leftover is removed under its own lock, never while a call holds that. A directory with unknown files stays.

/**
 * Waits for the lock of a record directory. Disposing of the result releases the lock, and removes the directory if
 * nothing is recorded in it.
 * @throws {Refusal} if the volume is still walked for a call that has ended, or if the lock holder makes no progress
 */
export function holdPlace(session: Session, place: Place): Promise<Disposable> {
  const refuse = refusingStuckHolder(session, place)
  const tellWalk = walkTeller(session, place)
  return retryUntilDefined(() => {
    const held = tryHoldPlace(session, place)
    if (held !== undefined) return held
    refuse()
    tellWalk()
    return undefined
  })
}

/** Takes the lock without waiting; returns undefined while another call holds it. */
export function tryHoldPlace(session: Session, place: Place): Disposable | undefined {
  const lock = tryLockPlace(session, place)
  const release = () => lock && releasePlace(session, place, lock)
  // A failure is only a warning, because it does not affect the work that was done under the lock.
  return lock && { [Symbol.dispose]: () => orWarn(session, `could not release the lock of ${place.name}`, release) }
}

/**
 * Releases the lock of a record directory in any case, and removes the directory if it is a leftover. An empty journal
 * is removed too. Everything stays while the process of a given-up walk has not ended.
 * @returns whether the directory was removed
 */
export function releasePlace(session: Session, place: Place, lock: Lock): boolean {
  let isOver = false
  try {
    const { volume } = place
    if (volume !== undefined && hasWalker(session, volume)) return false
    if (volume !== undefined) removeEmptyJournal(session, volume)
    isOver = leftoverFiles(session, place) !== undefined
    if (isOver) removeTransient(session, place)
  } finally {
    withPath('remove', `${place.path}/${LOCK_FILE}`, () => lock.release(isOver))
  }
  if (isOver) session.host.files.removeEmpty(place.path, place.top)
  return isOver
}

/** Removes files that an interrupted call left next to the records. Call it under the directory's lock. */
export function removeTransient(session: Session, { path, volume }: Place): void {
  const { files } = session.host
  for (const name of files.list(path)) {
    if (name !== LOCK_FILE && TRANSIENT_FILES.has(name)) files.remove(`${path}/${name}`)
  }
  if (volume !== undefined) reservations.remove(session, volume)
}

/**
 * Removes a record directory without records, after it was checked again under its lock.
 * @returns false if a call works there, which removes it itself, or if a call has recorded something since
 */
export function removeLeftover(session: Session, place: Place): boolean {
  const { files } = session.host
  if (files.list(place.path).length === 0) {
    files.removeEmpty(place.path, place.top)
    return true
  }
  const lock = tryLockPlace(session, place)
  return lock !== undefined && releasePlace(session, place, lock)
}

/** Removes all leftovers. A failure is a warning, because the next call retries. */
export function removeLeftovers(session: Session): void {
  orWarn(session, 'could not remove the leftovers of earlier calls', () => {
    const volumes = listVolumes(session).map((volume) => volumePlace(session, volume))
    for (const place of [...listMountPlaces(session), ...volumes]) {
      if (leftoverFiles(session, place)) removeLeftover(session, place)
    }
  })
}

/**
 * Removes an empty journal, because journals of deleted volumes would accumulate. A journal with a record stays. An
 * unreadable one stays for operators to inspect, and does not fail the unmount of a pod.
 */
function removeEmptyJournal(session: Session, volume: string): void {
  const { files } = session.host
  const { path } = volumePlace(session, volume)
  orWarn(session, 'could not remove an empty journal', () => {
    if (volumeRecords.has(session, volume) || !hasJournal(session, volume)) return
    if (!isJournalEmpty(session, volume)) return
    // SQLite's log exists while another process has the journal open: then a later restore removes the journal.
    const isInUse = files.list(path).some((name) => name.startsWith(`${JOURNAL_FILE}-`))
    if (!isInUse) files.remove(`${path}/${JOURNAL_FILE}`)
  })
}
