import { readdirSync, readFileSync, readlinkSync, statSync } from 'node:fs'
import { tolerateSystemErrors } from '../file-error.ts'

/**
 * Finds the visible processes that hold flock(2) of a file.
 * @param path as they have opened it, without links
 * @param inode of the file
 */
export function findLockHolders(path: string, inode: bigint): number[] {
  // fs/locks.c, lock_get_status. On some file systems its device numbers differ from those of stat(2).
  const lines = readFileSync('/proc/locks', 'latin1').matchAll(
    / FLOCK +ADVISORY +WRITE (\d+) [0-9a-f]+:[0-9a-f]+:(\d+) /g,
  )
  const holders = [...lines].filter(([, , number]) => number === String(inode)).map(([, pid]) => Number(pid))
  return holders.filter((pid) => tolerateSystemErrors(() => hasOpen(pid, path)) === true)
}

/** Returns one holder of the lock of the file that is now at the path. */
export function findLockHolder(path: string): number | undefined {
  const { ino } = tolerateSystemErrors(() => statSync(path, { bigint: true })) ?? {}
  return ino === undefined ? undefined : findLockHolders(path, ino)[0]
}

/** Compares only the links' texts, because other open files may belong to an unresponsive server. */
function hasOpen(pid: number, path: string): boolean {
  return listThreadDirectories(pid).some((task) =>
    readdirSync(`${task}/fd`).some((name) => tolerateSystemErrors(() => readlinkSync(`${task}/fd/${name}`)) === path),
  )
}

/**
 * Returns the /proc directories of the threads. If the first thread of a process has ended, only the other directories
 * have its files.
 */
export function listThreadDirectories(pid: number): string[] {
  return readdirSync(`/proc/${pid}/task`).map((task) => `/proc/${pid}/task/${task}`)
}

/**
 * Returns the context switch counters of a process's threads while one of them waits in the kernel for a lock or a disk
 * (state D). Otherwise returns undefined. A process that makes progress changes them with each wait.
 */
export function readBlockedActivity(pid: number): string | undefined {
  return tolerateSystemErrors(() => {
    const threads = listThreadDirectories(pid).map((task) => readFileSync(`${task}/status`, 'latin1'))
    if (!threads.some((status) => /^State:\s*D/m.test(status))) return undefined
    return threads.map((status) => status.match(/ctxt_switches:\s*\d+/g)?.join(' ')).join(' ')
  })
}
