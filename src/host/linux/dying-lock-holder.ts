import { fstatSync, readFileSync } from 'node:fs'
import { tolerateSystemErrors } from '../file-error.ts'
import { systemCall } from './kernel.ts'
import { findLockHolders, listThreadDirectories } from './lock-holders.ts'

const dieWithParent = systemCall('die_with_parent')

/** The kernel's name of an isolated process: /proc/PID/comm, at most 15 bytes. */
const PROCESS_NAME = 'modekeep errand'

/** Bit SIGKILL - 1 of a signal mask. */
const SIGKILL_BIT = 0x100n

/**
 * Checks whether the holder of a file's flock(2) is a killed isolated process that still waits in the kernel, as for a
 * FUSE daemon. Such a process runs no more code of its own. The walker's own lock covers the last change of a walk.
 * Other processes may have a change pending, so callers wait for them.
 * @param path as the holder has opened it, without links
 */
export function isHeldByDyingProcess(path: string, fd: number): boolean {
  const { ino } = fstatSync(fd, { bigint: true })
  return findLockHolders(path, ino).some((pid) => tolerateSystemErrors(() => isDyingProcess(pid)) === true)
}

function isDyingProcess(pid: number): boolean {
  if (readFileSync(`/proc/${pid}/comm`, 'latin1').trimEnd() !== PROCESS_NAME) return false
  const liveThreads = listThreadDirectories(pid)
    .map((task) => readFileSync(`${task}/status`, 'latin1'))
    .filter((status) => !/^State:\s*[ZX]/m.test(status))
  return liveThreads.length > 0 && liveThreads.every(hasPendingKill)
}

function hasPendingKill(status: string): boolean {
  const [, pending = '0'] = /^SigPnd:\s*([0-9a-f]+)$/m.exec(status) ?? []
  return (BigInt(`0x${pending}`) & SIGKILL_BIT) !== 0n
}

/** Names this process as supervised: its supervisor may kill it while it waits in the kernel. */
export function markSupervised(): void {
  process.title = PROCESS_NAME
}

/** Has the kernel kill this isolated process when its parent ends: prctl(2), PR_SET_PDEATHSIG. */
export function endWithParent(): void {
  markSupervised()
  dieWithParent()
}
