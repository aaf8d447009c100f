import { Refusal } from '../errors/refusal.ts'
import { addPathToErrors } from '../kernel/system-error.ts'
import {
  LOCK_FILE,
  locateVolumeRecords,
  type RecordDirectory,
  type Store,
  WALKER_LOCK_FILE,
} from './record-directories.ts'

// Which process holds a lock, and whether a wait for it can end. Nothing here takes a lock: see locks.ts.

/** Locks of the whole node. Each is a file of the state directory. */
export type NodeLockName = 'reservations' | 'metrics' | 'sweep' | 'sub-paths' | 'loop' | 'csi' | 'nri'

export function isRecordDirectoryBusy({ host }: Store, { path }: RecordDirectory): boolean {
  const lock = `${path}/${LOCK_FILE}`
  return addPathToErrors('look at', lock, () => host.isLocked(lock))
}

/** Returns whether a call walks or restores a volume, or mounts it after a walk. */
export function isVolumeBusy(store: Store, volume: string): boolean {
  return isRecordDirectoryBusy(store, locateVolumeRecords(store, volume)) || hasVolumeWalker(store, volume)
}

/**
 * Returns whether a process walks a volume for another process, which may have ended. A walker that waits for a server
 * outlives even SIGKILL: it may still make its last change, and may hold SQLite's locks. A new walker starts only under
 * the volume's lock.
 */
export function hasVolumeWalker(store: Store, volume: string): boolean {
  const lock = locateWalkerLock(store, volume)
  return addPathToErrors('look at', lock, () => store.host.isWorkerLockHeld(lock))
}

/** Returns the pid of a volume's walker, if its lock file has it. */
export function findVolumeWalkerPid(store: Store, volume: string): number | undefined {
  const pid = hasVolumeWalker(store, volume) ? Number(store.host.files.read(locateWalkerLock(store, volume))) : 0
  return pid > 0 ? pid : undefined
}

/** Returns the lock file of the process that walks a volume for the call that holds the volume's lock. */
export function locateWalkerLock(store: Store, volume: string): string {
  return `${locateVolumeRecords(store, volume).path}/${WALKER_LOCK_FILE}`
}

/** Returns whether a volume is still walked for a call that has ended. */
export function hasAbandonedWalker(store: Store, volume: string): boolean {
  return hasVolumeWalker(store, volume) && !isRecordDirectoryBusy(store, locateVolumeRecords(store, volume))
}

/** Reads records of a volume; returns 'busy' while a call works on it, because that may still change them. */
export function readWhileVolumeIdle<T>(store: Store, volume: string, read: () => T): T | 'busy' {
  if (hasVolumeWalker(store, volume)) return 'busy'
  const lock = `${locateVolumeRecords(store, volume).path}/${LOCK_FILE}`
  const result = addPathToErrors('look at', lock, () => store.host.whileUnlocked(lock, read))
  return result === 'locked' ? 'busy' : result
}

/** Ends the process that holds the directory's lock, if its parent has ended: see Host. @returns its pid */
export function endAbandonedLockHolder({ host }: Store, { path }: RecordDirectory, word: string): number | undefined {
  const lock = `${path}/${LOCK_FILE}`
  return host.isLocked(lock) ? host.endAbandoned(lock, word) : undefined
}

export function locateNodeLock({ config }: Pick<Store, 'config'>, lock: NodeLockName): string {
  return `${config.stateDir}/${lock}.lock`
}

/** Returns whether a server or a call holds a lock of the whole node. */
export function isNodeLockHeld({ host, config }: Store, lock: NodeLockName): boolean {
  const path = locateNodeLock({ config }, lock)
  return host.files.has(path) && host.isLocked(path)
}

/**
 * Milliseconds within which a walker ends after its caller, unless it waits for a server or a disk. This time and the
 * next one are shorter than the deadline of a container, so that its refusal can name the process.
 */
const WALKER_END_TIMEOUT_MS = 750
/** Milliseconds for which a process with a lock may wait in the kernel for one thing before others are refused. */
const MAX_KERNEL_WAIT_MS = 750
/** Milliseconds between two checks of the process' threads. */
const KERNEL_WAIT_CHECK_INTERVAL_MS = 100
/** Milliseconds until the lock holder is searched again, which blocks all lock operations of the node briefly. */
const LOCK_HOLDER_SEARCH_INTERVAL_MS = 1000

/**
 * Returns a check that a call runs repeatedly while it waits for the lock of a record directory. The check throws a
 * Refusal if the lock may never be released. Then the process at work waits in the kernel, or walks the volume for a
 * call that has ended.
 */
export function createStuckLockHolderCheck(store: Store, directory: RecordDirectory): () => void {
  const { volume } = directory
  if (volume === undefined && directory.refusesStuckHolder === undefined) return () => {}
  let since: number | undefined
  const findBlocked = createBlockedLockHolderCheck(store, directory)
  return () => {
    const now = performance.now()
    const isWalked = volume !== undefined && hasVolumeWalker(store, volume)
    if (!isWalked) since = undefined
    if (isRecordDirectoryBusy(store, directory)) {
      const pid = findBlocked(now)
      if (pid === undefined) return
      throw Refusal.of(
        'walk-given-up',
        `process ${pid} works on the volume for another call and makes no progress: the kernel makes it wait for the disk or the server of the volume, or for a directory that another process keeps locked`,
        'end that process, or repair the disk or the server, then the next call goes on',
      )
    }
    if (!isWalked) return
    since ??= now
    if (now - since < WALKER_END_TIMEOUT_MS) return
    throw Refusal.of(
      'unresponsive-call',
      `process ${findVolumeWalkerPid(store, volume) ?? '(unknown)'} still walks the volume for a call that is over, as it waits for the server or the daemon of the volume's file system, which does not respond, or for a directory that another process keeps locked`,
      'repair that on the node, then the next call goes on',
    )
  }
}

/** Finds the process at work: the volume's walker, or else the lock holder. */
function findWalkerOrLockHolder(store: Store, { path, volume }: RecordDirectory): number | undefined {
  const walker = volume === undefined ? undefined : findVolumeWalkerPid(store, volume)
  return walker ?? store.host.lockHolder(`${path}/${LOCK_FILE}`)
}

/** The function returns the pid of the process at work if it has waited in the kernel for one thing for too long. */
function createBlockedLockHolderCheck(store: Store, directory: RecordDirectory): (now: number) => number | undefined {
  let holder: { pid: number | undefined; at: number } | undefined
  let last: { activity: string; since: number } | undefined
  let next = 0
  return (now) => {
    if (now < next) return undefined
    next = now + KERNEL_WAIT_CHECK_INTERVAL_MS
    const isDue = holder === undefined || now - holder.at >= LOCK_HOLDER_SEARCH_INTERVAL_MS
    if (isDue) {
      const pid = findWalkerOrLockHolder(store, directory)
      if (pid !== holder?.pid) last = undefined
      holder = { pid, at: now }
    }
    const pid = holder?.pid
    const activity = pid === undefined ? undefined : store.host.readBlockedActivity(pid)
    if (activity === undefined) last = undefined
    else if (activity !== last?.activity) last = { activity, since: now }
    if (last === undefined || now - last.since < MAX_KERNEL_WAIT_MS) return undefined
    return isDue || findWalkerOrLockHolder(store, directory) === pid ? pid : undefined
  }
}
