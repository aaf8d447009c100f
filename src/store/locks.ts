import { withPath } from '../host/file-error.ts'
import { errorCode, type Lock } from '../host/host.ts'
import { LOCK_FILE, type Place, type Store, volumePlace } from './places.ts'

/**
 * One call at a time for a mount directory; one walk or restore at a time for a volume. The volume's is taken after the
 * mount's, never before; nobody takes two of a kind. The place is made where it is not there.
 */
export function tryLockPlace({ host }: Store, { path }: Place): Lock | undefined {
  host.files.makeDirectory(path)
  try {
    return withPath('lock', `${path}/${LOCK_FILE}`, () => host.tryLock(`${path}/${LOCK_FILE}`))
  } catch (error) {
    // Its last holder has just removed the directory.
    if (errorCode(error) === 'ENOENT') return undefined
    throw error
  }
}

export function isPlaceBusy({ host }: Store, { path }: Place): boolean {
  const lock = `${path}/${LOCK_FILE}`
  return withPath('look at', lock, () => host.isLocked(lock))
}

/** Reads what is on record of a volume; 'busy' while a call is at work on it: what that has written is not its last word. */
export function readWhileIdle<T>(store: Store, volume: string, read: () => T): T | 'busy' {
  const lock = `${volumePlace(store, volume).path}/${LOCK_FILE}`
  const found = withPath('look at', lock, () => store.host.whileUnlocked(lock, read))
  return found === 'locked' ? 'busy' : found
}

/** Whether a walk or a restore of a volume that has been walked is under way, or a mount after one. */
export function isVolumeBusy(store: Store, volume: string): boolean {
  return isPlaceBusy(store, volumePlace(store, volume))
}

/**
 * One process at a time on the whole node: reserves a volume (taken last, and held for a look at the others only),
 * counts for the metrics, sweeps after a boot, puts kubelet's sub paths in order, or looks for an image's loop device.
 */
export function tryLockNode(
  { host, config }: Store,
  work: 'reservations' | 'metrics' | 'sweep' | 'sub-paths' | 'loop',
): Disposable | undefined {
  host.files.makeDirectory(config.stateDir)
  const path = `${config.stateDir}/${work}.lock`
  return withPath('lock', path, () => host.tryLock(path))
}
