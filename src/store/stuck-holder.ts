import { Refusal } from '../refusal/refusal.ts'
import { findWalker, hasWalker, isRecordDirectoryBusy } from './locks.ts'
import { LOCK_FILE, type RecordDirectory, type Store } from './record-directories.ts'

/**
 * Milliseconds within which a walker ends after its caller, unless it waits for a server or a disk. This time and the
 * next one are shorter than the deadline of a container, so that its refusal can name the process.
 */
const WALKER_END_MS = 750
/** Milliseconds for which a process with a lock may wait in the kernel for one thing before others are refused. */
const MAX_BLOCK_MS = 750
/** Milliseconds between two checks of the process' threads. */
const BLOCK_CHECK_INTERVAL_MS = 100
/** Milliseconds until the lock holder is searched again, which blocks all lock operations of the node briefly. */
const HOLDER_INTERVAL_MS = 1000

/**
 * Returns a check that a call runs repeatedly while it waits for the lock of a record directory. The check throws a
 * Refusal if the lock may never be released. Then the process at work waits in the kernel, or walks the volume for a
 * call that has ended.
 */
export function createStuckHolderCheck(store: Store, directory: RecordDirectory): () => void {
  const { volume } = directory
  if (volume === undefined && directory.refusesStuckHolder === undefined) return () => {}
  let since: number | undefined
  const findBlocked = createBlockedHolderCheck(store, directory)
  return () => {
    const now = performance.now()
    const isWalked = volume !== undefined && hasWalker(store, volume)
    if (!isWalked) since = undefined
    if (isRecordDirectoryBusy(store, directory)) {
      const pid = findBlocked(now)
      if (pid === undefined) return
      throw new Refusal(
        `process ${pid} works on the volume for another call and makes no progress: the kernel makes it wait for the disk or the server of the volume, or for a directory that another process keeps locked: end that process, or repair the disk or the server, then the next call goes on`,
      )
    }
    if (!isWalked) return
    since ??= now
    if (now - since < WALKER_END_MS) return
    throw new Refusal(
      `process ${findWalker(store, volume) ?? '(unknown)'} still walks the volume for a call that is over, as it waits for the server or the daemon of the volume's file system, which does not respond, or for a directory that another process keeps locked: repair that on the node, then the next call goes on`,
    )
  }
}

/** Finds the process at work: the volume's walker, or else the lock holder. */
function findProcessAtWork(store: Store, { path, volume }: RecordDirectory): number | undefined {
  const walker = volume === undefined ? undefined : findWalker(store, volume)
  return walker ?? store.host.lockHolder(`${path}/${LOCK_FILE}`)
}

/**
 * Returns a function that finds the process at work. It returns the pid if the process has waited in the kernel for one
 * thing for too long.
 */
function createBlockedHolderCheck(store: Store, directory: RecordDirectory): (now: number) => number | undefined {
  let holder: { pid: number | undefined; at: number } | undefined
  let last: { activity: string; since: number } | undefined
  let next = 0
  return (now) => {
    if (now < next) return undefined
    next = now + BLOCK_CHECK_INTERVAL_MS
    const isDue = holder === undefined || now - holder.at >= HOLDER_INTERVAL_MS
    if (isDue) {
      const pid = findProcessAtWork(store, directory)
      if (pid !== holder?.pid) last = undefined
      holder = { pid, at: now }
    }
    const pid = holder?.pid
    const activity = pid === undefined ? undefined : store.host.readBlockedActivity(pid)
    if (activity === undefined) last = undefined
    else if (activity !== last?.activity) last = { activity, since: now }
    if (last === undefined || now - last.since < MAX_BLOCK_MS) return undefined
    return isDue || findProcessAtWork(store, directory) === pid ? pid : undefined
  }
}
