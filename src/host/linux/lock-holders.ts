import { readdirSync, readFileSync, readlinkSync, statSync } from 'node:fs'
import { tolerateSystemErrors } from '../file-error.ts'

/**
 * The processes that have flock(2) of a file, as far as they are seen here.
 * @param path as they have opened it: without links
 * @param inode the file's
 */
export function findLockHolders(path: string, inode: bigint): number[] {
  // fs/locks.c, lock_get_status; numbers of devices differ from those of stat(2) on some file systems.
  const lines = readFileSync('/proc/locks', 'latin1').matchAll(
    / FLOCK +ADVISORY +WRITE (\d+) [0-9a-f]+:[0-9a-f]+:(\d+) /g,
  )
  const holders = [...lines].filter(([, , number]) => number === String(inode)).map(([, pid]) => Number(pid))
  return holders.filter((pid) => tolerateSystemErrors(() => hasOpen(pid, path)) === true)
}

/** The first of them, of a file that is where the path says. */
export function findLockHolder(path: string): number | undefined {
  const { ino } = tolerateSystemErrors(() => statSync(path, { bigint: true })) ?? {}
  return ino === undefined ? undefined : findLockHolders(path, ino)[0]
}

/** By the links' texts: what is open beside it may be a server's that does not respond. */
function hasOpen(pid: number, path: string): boolean {
  return listThreadDirectories(pid).some((task) =>
    readdirSync(`${task}/fd`).some((name) => tolerateSystemErrors(() => readlinkSync(`${task}/fd/${name}`)) === path),
  )
}

/** The directories of its threads: of one whose first thread has ended, only the others tell. */
export function listThreadDirectories(pid: number): string[] {
  return readdirSync(`/proc/${pid}/task`).map((task) => `/proc/${pid}/task/${task}`)
}
