import type { Lock } from '../host/host.ts'
import { tryLockVolume } from './locks.ts'
import { CLAIM_FILE, LOCK_FILE, PROGRESS_FILE, volumeStateDirectory } from './paths.ts'
import { removeClaim } from './reservation-record.ts'
import type { Session } from './session.ts'
import { forgetEmptyJournal } from './volume-journal.ts'
import { listVolumes } from './volume-record.ts'
import { removeWalkProgress } from './walk-progress.ts'

// Also half-written: files are replaced by way of a new one.
export const PASSING: ReadonlySet<string> = new Set(
  [LOCK_FILE, CLAIM_FILE, PROGRESS_FILE].flatMap((name) => [name, `${name}.new`]),
)

/** Gives a volume's lock back, and leaves no trace of a volume of which nothing is remembered. */
export function releaseVolume(session: Session, volume: string, lock: Lock): void {
  const { host, config } = session
  const place = volumeStateDirectory(config.stateDir, volume)
  let isOver = false
  try {
    forgetEmptyJournal(session, volume)
    isOver = host.files.list(place).every((name) => PASSING.has(name))
    if (isOver) {
      removeClaim(host, config.stateDir, volume)
      removeWalkProgress(host, config.stateDir, volume)
    }
  } finally {
    lock.release(isOver)
  }
  if (isOver) host.files.removeEmpty(place, config.stateDir)
}

/** The same for all volumes: a call whose disk failed could not remove what it had made, and no record may name it. */
export function tidyVolumes(session: Session): void {
  const { host, config } = session
  for (const volume of listVolumes(host, config.stateDir)) {
    const names = host.files.list(volumeStateDirectory(config.stateDir, volume))
    if (names.every((name) => PASSING.has(name))) tidyVolume(session, volume)
  }
}

/** The same for what a call that died has left; whoever is at work on the volume does it himself. */
export function tidyVolume(session: Session, volume: string): void {
  const { host, config } = session
  const place = volumeStateDirectory(config.stateDir, volume)
  if (volume === '') return
  if (host.files.list(place).length === 0) {
    host.files.removeEmpty(place, config.stateDir)
    return
  }
  const lock = tryLockVolume(host, config.stateDir, volume)
  if (lock) releaseVolume(session, volume, lock)
}
