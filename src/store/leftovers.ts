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

// A leftover goes under its own lock alone, and never while a call holds it. What is not understood stays.

/**
 * Has a place's lock until the end of the block, and leaves no trace there where nothing is recorded.
 * @throws {Refusal} for a volume that is still walked for a call that is over, or whose process at work makes no progress
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

/** Undefined while a call has it. */
export function tryHoldPlace(session: Session, place: Place): Disposable | undefined {
  const lock = tryLockPlace(session, place)
  const release = () => lock && releasePlace(session, place, lock)
  // What fails says nothing of the work that was done under the lock.
  return lock && { [Symbol.dispose]: () => orWarn(session, `could not release the lock of ${place.name}`, release) }
}

/**
 * Gives a place's lock back, whatever fails, and removes the place where it is a leftover; a journal in which nothing
 * is written any more goes too. Where a walk was given up whose process has not ended yet, all stays.
 * @returns whether it is gone
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

/** Removes what an interrupted call left in a place beside what is remembered. Call it under the place's lock. */
export function removeTransient(session: Session, { path, volume }: Place): void {
  const { files } = session.host
  for (const name of files.list(path)) {
    if (name !== LOCK_FILE && TRANSIENT_FILES.has(name)) files.remove(`${path}/${name}`)
  }
  if (volume !== undefined) reservations.remove(session, volume)
}

/**
 * Removes a place where nothing is remembered; it is looked at again under its lock.
 * @returns false where a call is at work there, which does so itself, or has been since it was listed
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

/** Removes every leftover. What fails is a warning: the next call tries again. */
export function removeLeftovers(session: Session): void {
  orWarn(session, 'could not remove the leftovers of earlier calls', () => {
    const volumes = listVolumes(session).map((volume) => volumePlace(session, volume))
    for (const place of [...listMountPlaces(session), ...volumes]) {
      if (leftoverFiles(session, place)) removeLeftover(session, place)
    }
  })
}

/**
 * Volumes come and go, their journals would stay for ever. One of which a record speaks stays, and so does one that
 * cannot be read: for people to look at, and it keeps no pod from going.
 */
function removeEmptyJournal(session: Session, volume: string): void {
  const { files } = session.host
  const { path } = volumePlace(session, volume)
  orWarn(session, 'could not remove an empty journal', () => {
    if (volumeRecords.has(session, volume) || !hasJournal(session, volume)) return
    if (!isJournalEmpty(session, volume)) return
    // SQLite's log stays while somebody else has the journal open: then another restore removes it.
    const isInUse = files.list(path).some((name) => name.startsWith(`${JOURNAL_FILE}-`))
    if (!isInUse) files.remove(`${path}/${JOURNAL_FILE}`)
  })
}
