import { fstatSync, readFileSync } from 'node:fs'
import { tolerateSystemErrors } from '../file-error.ts'
import { systemCall } from './kernel.ts'
import { findLockHolders, listThreadDirectories } from './lock-holders.ts'

const dieWithParent = systemCall('die_with_parent')

/** What the kernel calls a process that runs an errand, in its own words: /proc/PID/comm, at most 15 bytes. */
const PROCESS_NAME = 'modekeep errand'

/** Bit SIGKILL - 1 of a mask of signals. */
const SIGKILL_BIT = 0x100n

/**
 * Whether an errand holds flock(2) of a file that was killed and only waits in the kernel, as for a FUSE daemon that has
 * taken its request. It runs none of its own code any more; of a walk, whose last change may still be made, the walker's
 * own lock tells. Other processes than errands may have such a change under way: theirs is waited for.
 * @param path as the holder has opened it: without links
 */
export function isHeldByDyingProcess(path: string, fd: number): boolean {
  const { ino } = fstatSync(fd, { bigint: true })
  return findLockHolders(path, ino).some((pid) => tolerateSystemErrors(() => isDyingProcess(pid)) === true)
}

function isDyingProcess(pid: number): boolean {
  if (readFileSync(`/proc/${pid}/comm`, 'latin1').trimEnd() !== PROCESS_NAME) return false
  const alive = listThreadDirectories(pid)
    .map((task) => readFileSync(`${task}/status`, 'latin1'))
    .filter((status) => !/^State:\s*[ZX]/m.test(status))
  return alive.length > 0 && alive.every(hasPendingKill)
}

function hasPendingKill(status: string): boolean {
  const [, pending = '0'] = /^SigPnd:\s*([0-9a-f]+)$/m.exec(status) ?? []
  return (BigInt(`0x${pending}`) & SIGKILL_BIT) !== 0n
}

/** Names this process as one that another process supervises, and may kill while it waits in the kernel. */
export function markSupervised(): void {
  process.title = PROCESS_NAME
}

/** prctl(2), PR_SET_PDEATHSIG: this errand is killed when the process that has started it ends, however that ends. */
export function endWithParent(): void {
  markSupervised()
  dieWithParent()
}
