import { getErrno, type Lock } from '../kernel/host.ts'
import { addPathToErrors } from '../kernel/system-error.ts'
import { retryUntilDefined } from '../kernel/waiting.ts'
import {
  createStuckLockHolderCheck,
  hasVolumeWalker,
  locateNodeLock,
  locateWalkerLock,
  type NodeLockName,
} from './lock-holders.ts'
import { mountRecords } from './mount-record.ts'
import { reservationRecords, walkProgressRecords } from './process-records.ts'
import {
  JOURNAL_FILE,
  LOCK_FILE,
  listLeftoverFiles,
  listMountRecordDirectories,
  listVolumesWithRecords,
  locateVolumeRecords,
  type RecordDirectory,
  type Store,
  TRANSIENT_FILES,
} from './record-directories.ts'
import { type Session, warnOnFailure } from './session.ts'
import { hasVolumeJournal, isJournalEmpty } from './volume-journal.ts'
import { volumeRecords } from './volume-record.ts'

// All locks of records and of the node: waiting for one, trying, releasing, and what is removed at a release.

/**
 * Waits for the lock of a record directory. Disposing of the result releases the lock, and removes the directory if
 * nothing is recorded in it.
 * @throws {Refusal} if the volume is still walked for a call that has ended, or if the lock holder makes no progress
 */
export function acquireRecordLock(session: Session, directory: RecordDirectory): Promise<Disposable> {
  const refuse = createStuckLockHolderCheck(session, directory)
  const reportWalk = createLockWaitReporter(session, directory)
  return retryUntilDefined(() => {
    const held = tryAcquireRecordLock(session, directory)
    if (held !== undefined) return held
    refuse()
    reportWalk()
    return undefined
  })
}

/** Milliseconds between two reports. A walk records its progress about as often. */
const LOCK_WAIT_REPORT_INTERVAL_MS = 1000

/**
 * Returns a function that a call runs repeatedly while it waits for a record directory. The function reports to the
 * session the progress of the walk that the other call runs, if any. For a mount directory, that is the walk of the
 * volume that is being mounted.
 */
function createLockWaitReporter(session: Session, directory: RecordDirectory): () => void {
  const { waits } = session
  if (waits === undefined) return () => {}
  let next = performance.now() + LOCK_WAIT_REPORT_INTERVAL_MS
  return () => {
    if (performance.now() < next) return
    next = performance.now() + LOCK_WAIT_REPORT_INTERVAL_MS
    const volume = directory.volume ?? mountRecords.find(session, directory.name).record?.volume
    const walk = volume ? walkProgressRecords.find(session, volume).record : undefined
    if (walk !== undefined) waits({ visited: walk.visited, changed: walk.changed })
  }
}

/** Takes the lock without waiting; returns undefined while another call holds it. */
export function tryAcquireRecordLock(session: Session, directory: RecordDirectory): Disposable | undefined {
  const lock = tryLockRecordDirectory(session, directory)
  if (lock === undefined) return undefined
  const release = () => void releaseRecordLock(session, directory, lock)
  // A failure is only a warning, because it does not affect the work that was done under the lock.
  return { [Symbol.dispose]: () => warnOnFailure(session, `could not release the lock of ${directory.name}`, release) }
}

/**
 * Takes the lock of a record directory, and creates the directory if it is missing. One call at a time works on a mount
 * directory, and one walk or restore at a time on a volume. The volume's lock is taken after the mount's, never before;
 * no call takes two of a kind. A volume that is still walked for a call that has ended cannot be locked: see
 * `hasVolumeWalker`.
 */
export function tryLockRecordDirectory(store: Store, { path, volume }: RecordDirectory): Lock | undefined {
  const { host } = store
  host.files.makeDirectory(path)
  try {
    const lock = addPathToErrors('lock', `${path}/${LOCK_FILE}`, () => host.tryLock(`${path}/${LOCK_FILE}`))
    if (lock === undefined || volume === undefined) return lock
    let isFree = false
    try {
      isFree = !hasVolumeWalker(store, volume)
    } finally {
      if (!isFree) lock.release()
    }
    return isFree ? lock : undefined
  } catch (error) {
    // The last lock holder has just removed the directory.
    if (getErrno(error) === 'ENOENT') return undefined
    throw error
  }
}

/**
 * Releases the lock of a record directory in any case, and removes the directory if it is a leftover. An empty journal
 * is removed too. Everything stays while the process of a given-up walk has not ended.
 * @returns whether the directory was removed
 */
export function releaseRecordLock(session: Session, directory: RecordDirectory, lock: Lock): boolean {
  let isOver = false
  try {
    const { volume } = directory
    if (volume !== undefined && hasVolumeWalker(session, volume)) return false
    if (volume !== undefined) removeEmptyJournal(session, volume)
    isOver = listLeftoverFiles(session, directory) !== undefined
    if (isOver) removeTransientRecordFiles(session, directory)
  } finally {
    addPathToErrors('remove', `${directory.path}/${LOCK_FILE}`, () => lock.release(isOver))
  }
  if (isOver) session.host.files.removeEmpty(directory.path, directory.top)
  return isOver
}

/**
 * Takes the walker lock for this process, which changes the volume itself. If the process is killed and the kernel does
 * not let it end, its last change may still be made. Call it under the volume's lock.
 */
export async function acquireWalkerLock(store: Store, volume: string): Promise<Disposable> {
  const lock = await retryUntilDefined(() => store.host.tryWorkerLock(locateWalkerLock(store, volume)))
  return { [Symbol.dispose]: () => lock.release(true) }
}

/**
 * Takes a lock of the whole node. One process at a time reserves a volume, updates the metrics, sweeps after a boot or
 * repairs kubelet's sub paths. The same holds for finding an image's loop device, serving CSI and running the runtime's
 * plugin. The lock for reservations is taken last, and held only while the other reservations are checked.
 */
export function tryAcquireNodeLock({ host, config }: Store, lock: NodeLockName): Disposable | undefined {
  host.files.makeDirectory(config.stateDir)
  const path = locateNodeLock({ config }, lock)
  return addPathToErrors('lock', path, () => host.tryLock(path))
}

/** Waits for a lock of the whole node that others hold only for a moment. */
export function acquireNodeLock(store: Store, lock: 'reservations' | 'loop'): Promise<Disposable> {
  return retryUntilDefined(() => tryAcquireNodeLock(store, lock))
}

// A leftover is removed under its own lock, never while a call holds that. A directory with unknown files stays.

/** Removes files that an interrupted call left next to the records. Call it under the directory's lock. */
export function removeTransientRecordFiles(session: Session, { path, volume }: RecordDirectory): void {
  const { files } = session.host
  for (const name of files.list(path)) {
    if (name !== LOCK_FILE && TRANSIENT_FILES.has(name)) files.remove(`${path}/${name}`)
  }
  if (volume !== undefined) reservationRecords.remove(session, volume)
}

/**
 * Removes a record directory without records, after it was checked again under its lock.
 * @returns false if a call works there, which removes it itself, or if a call has recorded something since
 */
export function removeLeftoverRecordDirectory(session: Session, directory: RecordDirectory): boolean {
  const { files } = session.host
  if (files.list(directory.path).length === 0) {
    files.removeEmpty(directory.path, directory.top)
    return true
  }
  const lock = tryLockRecordDirectory(session, directory)
  return lock !== undefined && releaseRecordLock(session, directory, lock)
}

/** Removes all leftovers. A failure is a warning, because the next call retries. */
export function removeLeftoverRecordDirectories(session: Session): void {
  warnOnFailure(session, 'could not remove the leftovers of earlier calls', () => {
    const volumes = listVolumesWithRecords(session).map((volume) => locateVolumeRecords(session, volume))
    for (const directory of [...listMountRecordDirectories(session), ...volumes]) {
      if (listLeftoverFiles(session, directory)) removeLeftoverRecordDirectory(session, directory)
    }
  })
}

/**
 * Removes an empty journal, because journals of deleted volumes would accumulate. A journal with a record stays. An
 * unreadable one stays for operators to inspect, and does not fail the unmount of a pod.
 */
function removeEmptyJournal(session: Session, volume: string): void {
  const { files } = session.host
  const { path } = locateVolumeRecords(session, volume)
  warnOnFailure(session, 'could not remove an empty journal', () => {
    if (volumeRecords.has(session, volume) || !hasVolumeJournal(session, volume)) return
    if (!isJournalEmpty(session, volume)) return
    // SQLite's log exists while another process has the journal open: then a later restore removes the journal.
    const isInUse = files.list(path).some((name) => name.startsWith(`${JOURNAL_FILE}-`))
    if (!isInUse) files.remove(`${path}/${JOURNAL_FILE}`)
  })
}
