import { fstatSync, readdirSync, readFileSync, readlinkSync, statSync } from 'node:fs'
import { tolerateSystemErrors } from '../system-error.ts'
import { WORKER_PROCESS_NAME } from '../worker-process.ts'
import { hasOwnUserIds, hasProcessRaisedRights, readProcText, withPidfd } from './processes.ts'

/**
 * Finds the visible processes that hold flock(2) of a file.
 * @param path as they have opened it, without links
 * @param inode of the file: by default of the one that is now at the path
 */
export function findLockHolders(path: string, inode = readInodeNumber(path)): number[] {
  if (inode === undefined) return []
  // fs/locks.c, lock_get_status. On some file systems its device numbers differ from those of stat(2).
  const lines = readFileSync('/proc/locks', 'latin1').matchAll(
    / FLOCK +ADVISORY +WRITE (\d+) [0-9a-f]+:[0-9a-f]+:(\d+) /g,
  )
  const holders = [...lines].filter(([, , number]) => number === String(inode)).map(([, pid]) => Number(pid))
  return holders.filter((pid) => tolerateSystemErrors(() => hasProcessOpened(pid, path)) === true)
}

function readInodeNumber(path: string): bigint | undefined {
  return tolerateSystemErrors(() => statSync(path, { bigint: true }))?.ino
}

/** Compares only the links' texts, because other open files may belong to an unresponsive server. */
function hasProcessOpened(pid: number, path: string): boolean {
  return listThreadDirectories(pid).some((task) =>
    readdirSync(`${task}/fd`).some((name) => tolerateSystemErrors(() => readlinkSync(`${task}/fd/${name}`)) === path),
  )
}

/** If the first thread of a process has ended, only the directories of the others have its files. */
export function listThreadDirectories(pid: number): string[] {
  return readdirSync(`/proc/${pid}/task`).map((task) => `/proc/${pid}/task/${task}`)
}

/**
 * Returns the context switch counters of a process's threads while one of them waits in the kernel for a lock or a disk
 * (state D). Otherwise returns undefined. A process that makes progress changes them with each wait.
 */
export function readBlockedThreadCounters(pid: number): string | undefined {
  return tolerateSystemErrors(() => {
    const threads = listThreadDirectories(pid).map((task) => readFileSync(`${task}/status`, 'latin1'))
    if (!threads.some((status) => /^State:\s*D/m.test(status))) return undefined
    return threads.map((status) => status.match(/ctxt_switches:\s*\d+/g)?.join(' ')).join(' ')
  })
}

/** Bit SIGKILL - 1 of a signal mask. */
const SIGKILL_BIT = 0x100n

/**
 * Checks whether the holder of a file's flock(2) is a killed isolated process that still waits in the kernel, as for a
 * FUSE daemon. Such a process runs no more code of its own. The walker's own lock covers the last change of a walk.
 * Other processes may have a change pending, so callers wait for them.
 * @param path as the holder has opened it, without links
 */
export function isLockHeldByDyingProcess(path: string, fd: number): boolean {
  const { ino } = fstatSync(fd, { bigint: true })
  return findLockHolders(path, ino).some((pid) => tolerateSystemErrors(() => isDyingProcess(pid)) === true)
}

function isDyingProcess(pid: number): boolean {
  if (readFileSync(`/proc/${pid}/comm`, 'latin1').trimEnd() !== WORKER_PROCESS_NAME) return false
  const liveThreads = listThreadDirectories(pid)
    .map((task) => readFileSync(`${task}/status`, 'latin1'))
    .filter((status) => !/^State:\s*[ZX]/m.test(status))
  return liveThreads.length > 0 && liveThreads.every(hasPendingSigkill)
}

function hasPendingSigkill(status: string): boolean {
  const [, pending = '0'] = /^SigPnd:\s*([0-9a-f]+)$/m.exec(status) ?? []
  return (BigInt(`0x${pending}`) & SIGKILL_BIT) !== 0n
}

/**
 * Kills the process of this program that holds a lock, has this word as first argument, and is no child of this
 * process's parent. Only one process may have such children, so the holder's own parent has ended.
 * @param lock the file, by a path without links
 * @returns its pid
 */
export function killAbandonedLockHolder(lock: string, verb: string): number | undefined {
  const isAbandoned = (pid: number) =>
    pid !== process.pid &&
    hasOwnUserIds(pid) &&
    !hasProcessRaisedRights(pid) &&
    hasProcessFirstArgument(pid, verb) &&
    readParentPid(pid) !== process.ppid
  for (const pid of findLockHolders(lock)) {
    const isEnded = withPidfd(pid, (kill) => {
      if (!isAbandoned(pid)) return false
      kill()
      return true
    })
    if (isEnded) return pid
  }
  return undefined
}

const hasProcessFirstArgument = (pid: number, verb: string) => readProcText(pid, 'cmdline').split('\0')[1] === verb

const readParentPid = (pid: number) => Number(/^PPid:\s*(\d+)$/m.exec(readProcText(pid, 'status'))?.[1])
