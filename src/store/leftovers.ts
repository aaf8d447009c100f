import { withPath } from '../host/file-error.ts'
import type { Lock } from '../host/host.ts'
import { tryLockPlace } from './locks.ts'
import { JOURNAL_FILE, LOCK_FILE, TRANSIENT_FILES } from './paths.ts'
import { leftoverFiles, listMountPlaces, mountPlace, type Place, volumePlace } from './places.ts'
import type { Session } from './session.ts'
import { hasJournal, isJournalEmpty } from './volume-journal.ts'
import { hasVolumeRecord, listVolumes } from './volume-record.ts'

// A leftover goes under its own lock alone, and never while a call holds that. Nothing that is not understood goes with it.

/** Gives a mount directory's lock back, and leaves no trace where nothing is recorded of it. A failure is only a warning. */
export function releaseMount(session: Session, directory: string, lock: Lock): void {
  release(session, mountPlace(session.config.stateDir, directory), lock, directory)
}

/** The same for a volume. A journal in which nothing is written any more goes too. */
export function releaseVolume(session: Session, volume: string, lock: Lock): void {
  release(session, volumePlace(session.config.stateDir, volume), lock, `volume ${volume}`)
}

/** What fails here says nothing of the work that was done under the lock. */
function release(session: Session, place: Place, lock: Lock, name: string): void {
  try {
    releasePlace(session, place, lock)
  } catch (error) {
    session.warn(`the lock of ${name} was left behind: ${(error as Error).message}`)
  }
}

/**
 * Gives a place's lock back, whatever fails, and removes the place where it is a leftover.
 * @returns whether it is gone
 */
export function releasePlace(session: Session, place: Place, lock: Lock): boolean {
  let isOver = false
  try {
    if (place.volume !== undefined) removeEmptyJournal(session, place.volume)
    isOver = leftoverFiles(session.host, place) !== undefined
    if (isOver) removeTransient(session, place)
  } finally {
    withPath('remove', `${place.path}/${LOCK_FILE}`, () => lock.release(isOver))
  }
  if (isOver) session.host.files.removeEmpty(place.path, place.top)
  return isOver
}

/** Removes what an interrupted call has left in a place beside what is remembered there. Call it under the place's lock. */
export function removeTransient({ host: { files } }: Session, { path }: Place): void {
  for (const name of files.list(path)) {
    if (name !== LOCK_FILE && TRANSIENT_FILES.has(name)) files.remove(`${path}/${name}`)
  }
}

/**
 * Removes a place that is a leftover; it is looked at again under its lock.
 * @returns false where a call is at work there, or has been since it was listed
 */
export function removeLeftover(session: Session, place: Place): boolean {
  const { host } = session
  if (host.files.list(place.path).length === 0) {
    host.files.removeEmpty(place.path, place.top)
    return true
  }
  const lock = tryLockPlace(host, place.path)
  return lock !== undefined && releasePlace(session, place, lock)
}

/** Removes a volume's place where nothing is remembered of it. Whoever is at work on the volume does so himself. */
export function removeVolumeLeftover(session: Session, volume: string): void {
  removeLeftover(session, volumePlace(session.config.stateDir, volume))
}

/** Removes every leftover. What fails is a warning: the next call tries again. */
export function removeLeftovers(session: Session): void {
  const { host, config } = session
  try {
    const volumes = () => listVolumes(host, config.stateDir).map((volume) => volumePlace(config.stateDir, volume))
    for (const list of [() => listMountPlaces(host, config.stateDir), volumes]) {
      for (const place of list()) if (leftoverFiles(host, place)) removeLeftover(session, place)
    }
  } catch (error) {
    session.warn(`could not remove all that earlier calls have left: ${(error as Error).message}`)
  }
}

/**
 * Removes a journal in which nothing is written any more: volumes come and go, their journals would stay for ever. Call
 * it under the volume's lock. One of which a record speaks stays, and so does one that cannot be read: for people to look
 * at, and it keeps no pod from going.
 */
function removeEmptyJournal(session: Session, volume: string): void {
  const { host, config } = session
  const { path } = volumePlace(config.stateDir, volume)
  try {
    if (hasVolumeRecord(host, config.stateDir, volume) || !hasJournal(session, volume)) return
    if (!isJournalEmpty(session, volume)) return
    // SQLite's log stays while somebody else has the journal open: then another restore removes it.
    const isInUse = host.files.list(path).some((name) => name.startsWith(`${JOURNAL_FILE}-`))
    if (!isInUse) host.files.remove(`${path}/${JOURNAL_FILE}`)
  } catch (error) {
    session.warn(`an empty journal may have stayed: ${(error as Error).message}`)
  }
}
