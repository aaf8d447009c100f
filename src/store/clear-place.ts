import { tryLockPlace } from './locks.ts'
import { isLeftPlace, type MountPlace } from './mount-places.ts'
import { mountsDirectory, RECORD_FILE } from './paths.ts'
import type { Session } from './session.ts'

/**
 * Removes what a call that died has left of a mount of which nothing is recorded.
 * @returns false where a call is at work there, or has been since it was listed
 */
export function clearPlace({ host, config }: Session, { path }: MountPlace): boolean {
  const top = mountsDirectory(config.stateDir)
  if (host.files.list(path).length === 0) {
    host.files.removeEmpty(path, top)
    return true
  }
  const lock = tryLockPlace(host, path)
  if (lock === undefined) return false
  let isOver = false
  try {
    isOver = isLeftPlace(host, path)
    // With it goes what was to become a record.
    if (isOver) host.files.remove(`${path}/${RECORD_FILE}`)
  } finally {
    lock.release(isOver)
  }
  if (isOver) host.files.removeEmpty(path, top)
  return isOver
}
