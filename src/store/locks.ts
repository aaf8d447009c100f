import { retryUntilDefined } from '../host/back-off.ts'
import { withPath } from '../host/file-error.ts'
import { errorCode, type Lock } from '../host/host.ts'
import { LOCK_FILE, locateVolumeRecords, type RecordDirectory, type Store, WALKER_FILE } from './record-directories.ts'

/**
 * Takes the lock of a record directory, and creates the directory if it is missing. One call at a time works on a mount
 * directory, and one walk or restore at a time on a volume. The volume's lock is taken after the mount's, never before;
 * no call takes two of a kind. A volume that is still walked for a call that has ended cannot be locked: see
 * `hasWalker`.
 */
export function tryLockRecordDirectory(store: Store, { path, volume }: RecordDirectory): Lock | undefined {
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
    // The last lock holder has just removed the directory.
    if (errorCode(error) === 'ENOENT') return undefined
    throw error
  }
}

export function isRecordDirectoryBusy({ host }: Store, { path }: RecordDirectory): boolean {
  const lock = `${path}/${LOCK_FILE}`
  return withPath('look at', lock, () => host.isLocked(lock))
}

/** Ends the process that holds the directory's lock, if its parent has ended: see Host. @returns its pid */
export function endAbandonedLockHolder({ host }: Store, { path }: RecordDirectory, word: string): number | undefined {
  const lock = `${path}/${LOCK_FILE}`
  return host.isLocked(lock) ? host.endAbandoned(lock, word) : undefined
}

/** Reads records of a volume; returns 'busy' while a call works on it, because that may still change them. */
export function readWhileIdle<T>(store: Store, volume: string, read: () => T): T | 'busy' {
  if (hasWalker(store, volume)) return 'busy'
  const lock = `${locateVolumeRecords(store, volume).path}/${LOCK_FILE}`
  const result = withPath('look at', lock, () => store.host.whileUnlocked(lock, read))
  return result === 'locked' ? 'busy' : result
}

/** Returns whether a call walks or restores a volume, or mounts it after a walk. */
export function isVolumeBusy(store: Store, volume: string): boolean {
  return isRecordDirectoryBusy(store, locateVolumeRecords(store, volume)) || hasWalker(store, volume)
}

/** Returns the lock file of the process that walks a volume for the call that holds the volume's lock. */
export function locateWalkerLock(store: Store, volume: string): string {
  return `${locateVolumeRecords(store, volume).path}/${WALKER_FILE}`
}

/**
 * Returns whether a process walks a volume for another process, which may have ended. A walker that waits for a server
 * outlives even SIGKILL: it may still make its last change, and may hold SQLite's locks. A new walker starts only under
 * the volume's lock.
 */
export function hasWalker(store: Store, volume: string): boolean {
  const lock = locateWalkerLock(store, volume)
  return withPath('look at', lock, () => store.host.hasErrand(lock))
}

/**
 * Takes the walker lock for this process, which changes the volume itself. If the process is killed and the kernel does
 * not let it end, its last change may still be made. Call it under the volume's lock.
 */
export async function acquireWalkerLock(store: Store, volume: string): Promise<Disposable> {
  const lock = await retryUntilDefined(() => store.host.tryErrand(locateWalkerLock(store, volume)))
  return { [Symbol.dispose]: () => lock.release(true) }
}

/** Returns the pid of a volume's walker, if its lock file has it. */
export function findWalker(store: Store, volume: string): number | undefined {
  const pid = hasWalker(store, volume) ? Number(store.host.files.read(locateWalkerLock(store, volume))) : 0
  return pid > 0 ? pid : undefined
}

/**
 * Takes a lock of the whole node. One process at a time reserves a volume, updates the metrics, sweeps after a boot or
 * repairs kubelet's sub paths. The same holds for finding an image's loop device, serving CSI and running the runtime's
 * plugin. The lock for reservations is taken last, and held only while the other reservations are checked.
 */
export function tryLockNode(
  { host, config }: Store,
  work: 'reservations' | 'metrics' | 'sweep' | 'sub-paths' | 'loop' | 'csi' | 'nri',
): Disposable | undefined {
  host.files.makeDirectory(config.stateDir)
  const path = `${config.stateDir}/${work}.lock`
  return withPath('lock', path, () => host.tryLock(path))
}
