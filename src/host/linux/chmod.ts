import { chmodSync } from 'node:fs'
import { errorCode, type Handle } from '../host.ts'
import { AT_EMPTY_PATH, SYS_FCHMODAT2 } from './constants.ts'
import { EMPTY_PATH, libc, run } from './libc.ts'

const EMPTY = BigInt(AT_EMPTY_PATH)
let noFchmodat2 = false

/** chmod(2) of the inode a handle holds: fchmodat2(2), Linux 6.6. */
export function chmod(handle: Handle, mode: number): void {
  if (noFchmodat2) {
    chmodByMagicLink(handle, mode)
    return
  }
  try {
    run('fchmodat2', 'an open handle', () =>
      libc.syscall(SYS_FCHMODAT2, BigInt(handle), EMPTY_PATH, BigInt(mode), EMPTY, 0n, 0n),
    )
  } catch (error) {
    const code = errorCode(error)
    noFchmodat2 = code === 'ENOSYS' || (code === 'EPERM' && isFiltered(handle, mode))
    if (!noFchmodat2) throw error
    if (code === 'ENOSYS') chmodByMagicLink(handle, mode)
  }
}

/** The handle's own link leads to the same inode; no name is looked up. */
function chmodByMagicLink(handle: Handle, mode: number): void {
  chmodSync(`/proc/self/fd/${handle}`, mode)
}

/** Old container runtimes answer EPERM to calls that they do not know: then it works the other way. */
function isFiltered(handle: Handle, mode: number): boolean {
  try {
    chmodByMagicLink(handle, mode)
    return true
  } catch {
    return false
  }
}
