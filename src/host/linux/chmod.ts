import { chmodSync, fstatSync } from 'node:fs'
import { errorCode, type Handle } from '../host.ts'
import { readText } from '../read-text.ts'
import { AT_EMPTY_PATH } from './constants.ts'
import { done, putEmpty, systemCall } from './kernel.ts'

const fchmodat2 = systemCall('fchmodat2')

const SET_GID = 0o2000
const CAP_FSETID = 4n
let noFchmodat2 = false

/**
 * chmod(2) of the inode a handle holds: fchmodat2(2), Linux 6.6.
 * @throws {SystemError}
 * @throws {Error} where the kernel has left set-gid out, which chmod(2) does without a word for a process that is not in
 * the group and has no CAP_FSETID: no fault of the inode's, so that it is not to be passed over
 */
export function chmod(handle: Handle, mode: number): void {
  setMode(handle, mode)
  if ((mode & SET_GID) === 0 || hasFsetid()) return
  if ((fstatSync(handle).mode & SET_GID) !== 0) return
  throw new Error('chmod left set-gid out: give modekeep CAP_FSETID')
}

let fsetid: boolean | undefined

/** Capabilities do not change while a call runs. */
function hasFsetid(): boolean {
  fsetid ??= (effectiveCapabilities() & (1n << CAP_FSETID)) !== 0n
  return fsetid
}

function effectiveCapabilities(): bigint {
  const [, digits] = /^CapEff:\s*([0-9a-f]+)$/m.exec(readText('/proc/thread-self/status')) ?? []
  return BigInt(`0x${digits ?? '0'}`)
}

function setMode(handle: Handle, mode: number): void {
  if (noFchmodat2) {
    chmodByMagicLink(handle, mode)
    return
  }
  try {
    done(fchmodat2(handle, putEmpty(), mode, AT_EMPTY_PATH), 'fchmodat2', 'an open handle')
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
