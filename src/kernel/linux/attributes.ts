import { chmodSync, fstatSync } from 'node:fs'
import { Refusal } from '../../errors/refusal.ts'
import type { Handle, Name } from '../host.ts'
import { readText } from '../read-file.ts'
import { succeeds } from '../system-error.ts'
import {
  AT_EMPTY_PATH,
  AT_SYMLINK_NOFOLLOW,
  BLOCK_SIZE,
  DATA,
  data,
  putEmpty,
  putName,
  requireSuccess,
  SECOND_NAME,
  systemCall,
} from './kernel.ts'
import { parseProcessStatus } from './processes.ts'

const getxattr = systemCall('getxattr')
const setxattr = systemCall('setxattr')
const listxattr = systemCall('listxattr')
const listxattrat = systemCall('listxattrat')
const removexattr = systemCall('removexattr')

// Results of a call.
const EPERM = -1
const ENOSYS = -38
const ENODATA = -61
const EOPNOTSUPP = -95

/** Returns undefined if the inode lacks the attribute, as most do: that case must not throw. */
export function getAttribute(handle: Handle, name: string): Uint8Array | undefined {
  const result = getxattr(putName(formatMagicLink(handle)), putName(name, SECOND_NAME), DATA, BLOCK_SIZE)
  if (result === ENODATA || result === EOPNOTSUPP) return undefined
  return new Uint8Array(data.subarray(0, requireSuccess(result, 'getxattr', name)))
}

// Kernels before Linux 6.13 lack the call, and filters of old container runtimes reject it with EPERM. A wrong value
// only makes attribute lists slower.
let lacksListxattrat = false

/** Returns false once a call has shown that listxattrat(2) is missing. */
export function hasListxattrat(): boolean {
  return !lacksListxattrat
}

/** @param result of listxattrat(2) */
export function recordListxattratResult(result: number): void {
  if (result === ENOSYS || result === EPERM) lacksListxattrat = true
}

// The kernel allocates a buffer of this size on each call (fs/xattr.c). Longer lists are read through the handle.
const MAX_NAME_BYTES = 1024

/**
 * Calls listxattrat(2), Linux 6.13, by name, because a call through /proc takes several times as long. If it fails, the
 * list is read through the handle.
 */
export function listAttributeNames(handle: Handle, parent: Handle, name: Name): string {
  let size = lacksListxattrat ? ENOSYS : listxattrat(parent, putName(name), AT_SYMLINK_NOFOLLOW, DATA, MAX_NAME_BYTES)
  recordListxattratResult(size)
  if (size < 0) size = listxattr(putName(formatMagicLink(handle)), DATA, BLOCK_SIZE)
  if (size === 0 || size === EOPNOTSUPP) return ''
  return data.toString('latin1', 0, requireSuccess(size, 'listxattr', 'an open handle'))
}

export function setAttribute(handle: Handle, name: string, value: Uint8Array): void {
  data.set(value)
  requireSuccess(
    setxattr(putName(formatMagicLink(handle)), putName(name, SECOND_NAME), DATA, value.length, 0),
    'setxattr',
    name,
  )
}

export function removeAttribute(handle: Handle, name: string): void {
  requireSuccess(removexattr(putName(formatMagicLink(handle)), putName(name, SECOND_NAME)), 'removexattr', name)
}

// The *xattr calls reject O_PATH descriptors (EBADF), and so does getxattrat(2) with AT_EMPTY_PATH. The magic link
// leads to exactly this inode, even if that is a symbolic link.
function formatMagicLink(handle: Handle): string {
  return `/proc/self/fd/${handle}`
}

const fchmodat2 = systemCall('fchmodat2')

const SET_GID = 0o2000
const CAP_FSETID = 4n

/**
 * Changes the mode of a handle's inode: fchmodat2(2), Linux 6.6.
 * @throws {SystemError}
 * @throws {Refusal} if the kernel cleared set-gid. chmod(2) does so without an error if the process is not in the group
 * and lacks CAP_FSETID. The inode is not at fault, so callers must not skip it
 */
export function chmod(handle: Handle, mode: number): void {
  setMode(handle, mode)
  if ((mode & SET_GID) === 0 || hasFsetid()) return
  if ((fstatSync(handle).mode & SET_GID) !== 0) return
  throw Refusal.of('capability', 'chmod left set-gid out', 'give modekeep CAP_FSETID')
}

let fsetid: boolean | undefined

/** Capabilities do not change while a call runs. */
function hasFsetid(): boolean {
  if (fsetid === undefined) {
    const { capabilities } = parseProcessStatus(readText('/proc/thread-self/status'))
    fsetid = (capabilities & (1n << CAP_FSETID)) !== 0n
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
