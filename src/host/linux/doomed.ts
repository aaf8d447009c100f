import { fstatSync, readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { unlessRefused } from '../file-error.ts'
import { unless } from '../system-error.ts'
import { systemCall } from './kernel.ts'

const dieWithParent = systemCall('die_with_parent')

/** Bit SIGKILL - 1 of a mask of signals. */
const KILL = 0x100n

/**
 * Whether whoever holds flock(2) of a file was killed, and only waits in the kernel, as for a FUSE daemon that has taken
 * his request: he runs none of his own code any more, so that his lock guards nothing.
 */
export function isHeldByDoomed(path: string, fd: number): boolean {
  const { ino } = fstatSync(fd, { bigint: true })
  // fs/locks.c, lock_get_status; numbers of devices differ from those of stat(2) on some file systems.
  const line = new RegExp(`FLOCK +ADVISORY +WRITE (\\d+) [0-9a-f]+:[0-9a-f]+:${ino} `)
  const [, pid] = line.exec(readFileSync('/proc/locks', 'latin1')) ?? []
  return pid !== undefined && unlessRefused(() => isDoomed(pid) && hasOpen(pid, path)) === true
}

function isDoomed(pid: string): boolean {
  const [, pending = '0'] = /^SigPnd:\s*([0-9a-f]+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1')) ?? []
  return (BigInt(`0x${pending}`) & KILL) !== 0n
}

/** By the links' texts: what is open beside it may be a server's that does not respond. */
function hasOpen(pid: string, path: string): boolean {
  const directory = `/proc/${pid}/fd`
  return readdirSync(directory).some((name) => unless('ENOENT', () => readlinkSync(`${directory}/${name}`)) === path)
}

/** prctl(2), PR_SET_PDEATHSIG: this process is killed when the one that has started it ends, however that ends. */
export function endWithParent(): void {
  dieWithParent()
}
