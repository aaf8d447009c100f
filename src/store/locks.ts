import { withPath } from '../host/file-error.ts'
import { errorCode, type Host, type Lock } from '../host/host.ts'
import { waitFor } from '../host/wait-for.ts'
import {
  LOCK_FILE,
  METRICS_LOCK_FILE,
  mountStateDirectory,
  RESERVATIONS_LOCK_FILE,
  volumeStateDirectory,
} from './paths.ts'

/** One call at a time for a mount directory. */
export function lockMount(host: Host, stateDir: string, path: string): Promise<Lock> {
  return waitFor(() => tryLockMount(host, stateDir, path))
}

/** One walk or restore at a time for a volume. Taken after the mount's lock, never before; nobody takes two. */
export function lockVolume(host: Host, stateDir: string, volume: string): Promise<Lock> {
  return waitFor(() => tryLockPlace(host, volumeStateDirectory(stateDir, volume)))
}

/** One call at a time may reserve a volume, on the whole node: taken last, and held for a look at the others only. */
export function lockReservations(host: Host, stateDir: string): Promise<Lock> {
  return waitFor(() => tryLock(host, `${stateDir}/${RESERVATIONS_LOCK_FILE}`))
}

/** One process at a time counts for the metrics. */
export function tryLockMetrics(host: Host, stateDir: string): Lock | undefined {
  return tryLock(host, `${stateDir}/${METRICS_LOCK_FILE}`)
}

/** Whether a walk or a restore of a volume that has been walked is under way, or a mount after one. */
export function isVolumeBusy(host: Host, stateDir: string, volume: string): boolean {
  return isPlaceBusy(host, volumeStateDirectory(stateDir, volume))
}

/** Whether a call for a mount directory is under way. */
export function isMountBusy(host: Host, stateDir: string, path: string): boolean {
  return isPlaceBusy(host, mountStateDirectory(stateDir, path))
}

/** @param directory what the state directory keeps of a mount or a volume */
export function isPlaceBusy(host: Host, directory: string): boolean {
  const lock = `${directory}/${LOCK_FILE}`
  return withPath('look at', lock, () => host.isLocked(lock))
}

export function tryLockMount(host: Host, stateDir: string, path: string): Lock | undefined {
  return tryLockPlace(host, mountStateDirectory(stateDir, path))
}

/** @param directory what the state directory keeps of a mount or a volume; it is made where it is not there */
export function tryLockPlace(host: Host, directory: string): Lock | undefined {
  host.files.makeDirectory(directory)
  try {
    return tryLock(host, `${directory}/${LOCK_FILE}`)
  } catch (error) {
    // Its last holder has just removed the directory.
    if (errorCode(error) === 'ENOENT') return undefined
    throw error
  }
}

function tryLock(host: Host, path: string): Lock | undefined {
  return withPath('lock', path, () => host.tryLock(path))
}
