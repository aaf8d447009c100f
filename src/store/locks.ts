import { retryUntilDefined } from '../host/back-off.ts'
import { withPath } from '../host/file-error.ts'
import { errorCode, type Lock } from '../host/host.ts'
import { LOCK_FILE, type Place, type Store, volumePlace, WALKER_FILE } from './places.ts'

/**
 * One call at a time for a mount directory; one walk or restore at a time for a volume. The volume's is taken after the
 * mount's, never before; nobody takes two of a kind. The place is made where it is not there. A volume that is still
 * walked for a call that is over is not given: see `hasWalker`.
 */
export function tryLockPlace(store: Store, { path, volume }: Place): Lock | undefined {
  const { host } = store
  host.files.makeDirectory(path)
  try {
    const lock = withPath('lock', `${path}/${LOCK_FILE}`, () => host.tryLock(`${path}/${LOCK_FILE}`))
    if (lock === undefined || volume === undefined) return lock
    let isFree = false
    try {
      isFree = !hasWalker(store, volume)
    } finally {
      if (!isFree) lock.release()
    }
    return isFree ? lock : undefined
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

/** Ends whoever is at work in a place for a parent that has ended; see Host. @returns its number */
export function endAbandonedAt({ host }: Store, { path }: Place, word: string): number | undefined {
  const lock = `${path}/${LOCK_FILE}`
  return host.isLocked(lock) ? host.endAbandoned(lock, word) : undefined
}

/** Reads what is on record of a volume; 'busy' while a call is at work on it: what that has written is not its last word. */
export function readWhileIdle<T>(store: Store, volume: string, read: () => T): T | 'busy' {
  if (hasWalker(store, volume)) return 'busy'
  const lock = `${volumePlace(store, volume).path}/${LOCK_FILE}`
  const found = withPath('look at', lock, () => store.host.whileUnlocked(lock, read))
  return found === 'locked' ? 'busy' : found
}

/** Whether a walk or a restore of a volume that has been walked is under way, or a mount after one. */
export function isVolumeBusy(store: Store, volume: string): boolean {
  return isPlaceBusy(store, volumePlace(store, volume)) || hasWalker(store, volume)
}

/** The lock of the process that walks a volume for the call that has the volume's own. */
export function walkerLock(store: Store, volume: string): string {
  return `${volumePlace(store, volume).path}/${WALKER_FILE}`
}

/**
 * Whether a process is there that walks a volume for another one, which may have ended: who waits for a server outlives
 * even SIGKILL. It may have a last change under way, and SQLite's locks. Only under the volume's lock does a new one
 * begin.
 */
export function hasWalker(store: Store, volume: string): boolean {
  const lock = walkerLock(store, volume)
  return withPath('look at', lock, () => store.host.hasErrand(lock))
}

/**
 * Takes the walker lock for this process, which changes the volume itself: if it is killed and the kernel does not let it end, its
 * last change may still be made. Call it under the volume's lock.
 */
export async function holdWalker(store: Store, volume: string): Promise<Disposable> {
  const lock = await retryUntilDefined(() => store.host.tryErrand(walkerLock(store, volume)))
  return { [Symbol.dispose]: () => lock.release(true) }
}

/** Its number, as far as it is known. */
export function walkerOf(store: Store, volume: string): number | undefined {
  const pid = hasWalker(store, volume) ? Number(store.host.files.read(walkerLock(store, volume))) : 0
  return pid > 0 ? pid : undefined
}

/**
 * One process at a time on the whole node: reserves a volume (taken last, and held for a look at the others only),
 * counts for the metrics, sweeps after a boot, puts kubelet's sub paths in order, looks for an image's loop device,
 * serves CSI, or is the runtime's plugin.
 */
export function tryLockNode(
  { host, config }: Store,
  work: 'reservations' | 'metrics' | 'sweep' | 'sub-paths' | 'loop' | 'csi' | 'nri',
): Disposable | undefined {
  host.files.makeDirectory(config.stateDir)
  const path = `${config.stateDir}/${work}.lock`
  return withPath('lock', path, () => host.tryLock(path))
}
