import { chmodSync, fstatSync } from 'node:fs'
import { succeeds } from '../file-error.ts'
import type { Handle } from '../host.ts'
import { readText } from '../read-file.ts'
import { AT_EMPTY_PATH, putEmpty, requireSuccess, systemCall } from './kernel.ts'

const fchmodat2 = systemCall('fchmodat2')

const EPERM = -1
const ENOSYS = -38
const SET_GID = 0o2000
const CAP_FSETID = 4n

/**
 * Changes the mode of a handle's inode: fchmodat2(2), Linux 6.6.
 * @throws {SystemError}
 * @throws {Error} if the kernel cleared set-gid. chmod(2) does so without an error if the process is not in the group
 * and lacks CAP_FSETID. The inode is not at fault, so callers must not skip it
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
  if (fsetid === undefined) {
    const [, digits = '0'] = /^CapEff:\s*([0-9a-f]+)$/m.exec(readText('/proc/thread-self/status')) ?? []
    fsetid = (BigInt(`0x${digits}`) & (1n << CAP_FSETID)) !== 0n
  }
  return fsetid
}

let noFchmodat2 = false

function setMode(handle: Handle, mode: number): void {
  // The handle's magic link leads to the same inode without a lookup of its name.
  const chmodByLink = () => chmodSync(`/proc/self/fd/${handle}`, mode)
  const result = noFchmodat2 ? ENOSYS : fchmodat2(handle, putEmpty(), mode, AT_EMPTY_PATH)
  // Filters of old container runtimes return EPERM for unknown calls. The magic link still works.
  const isFiltered = result === EPERM && succeeds(chmodByLink)
  noFchmodat2 = isFiltered || result === ENOSYS
  if (result === ENOSYS) chmodByLink()
  else if (!isFiltered) requireSuccess(result, 'fchmodat2', 'an open handle')
}
