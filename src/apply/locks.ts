import { errorCode, type Host, type Lock } from '../host/host.ts'
import { LOCK_FILE, mountStateDirectory, mountsDirectory, volumeStateDirectory } from '../state/paths.ts'

/** One call at a time for a mount directory. */
export function lockMount(host: Host, stateDir: string, path: string): Promise<Lock> {
  return waitFor(() => tryLockMount(host, stateDir, path))
}

/** One walk or restore at a time for a volume. Taken after the mount's lock, never before. */
export function lockVolume(host: Host, stateDir: string, volume: string): Promise<Lock> {
  return waitFor(() => tryLockIn(host, volumeStateDirectory(stateDir, volume)))
}

/** Whether a walk or a restore of a volume that has been walked is under way, or a mount after one. */
export function isVolumeBusy(host: Host, stateDir: string, volume: string): boolean {
  const place = volumeStateDirectory(stateDir, volume)
  if (!host.files.list(place).includes(LOCK_FILE)) return false
  const lock = host.tryLock(`${place}/${LOCK_FILE}`)
  lock?.release()
  return lock === undefined
}

export function tryLockMount(host: Host, stateDir: string, path: string): Lock | undefined {
  return tryLockIn(host, mountStateDirectory(stateDir, path))
}

/** Gives the lock back and leaves no trace of the mount in the state directory. */
export function releaseForGood(host: Host, stateDir: string, path: string, lock: Lock): void {
  lock.release(true)
  host.files.removeEmpty(mountStateDirectory(stateDir, path), mountsDirectory(stateDir))
}

function tryLockIn(host: Host, directory: string): Lock | undefined {
  host.files.makeDirectory(directory)
  try {
    return host.tryLock(`${directory}/${LOCK_FILE}`)
  } catch (error) {
    // Its last holder has just removed the directory.
    if (errorCode(error) === 'ENOENT') return undefined
    throw error
  }
}

const FIRST_PAUSE = 2
const LONGEST_PAUSE = 50

/** Without limit: the holder is a running call, and the kernel frees the lock when it dies. Pauses are milliseconds. */
async function waitFor(attempt: () => Lock | undefined): Promise<Lock> {
  for (let pause = FIRST_PAUSE; ; pause = Math.min(pause * 2, LONGEST_PAUSE)) {
    const lock = attempt()
    if (lock) return lock
    await new Promise((resolve) => setTimeout(resolve, pause))
  }
}
