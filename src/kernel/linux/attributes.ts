import { chmodSync, fstatSync } from 'node:fs'
import { Refusal } from '../../errors/refusal.ts'
import type { EntryName, Handle } from '../host.ts'
import { readTextFile } from '../read-file.ts'
import { hasCallSucceeded } from '../system-error.ts'
import {
  AT_EMPTY_PATH,
  AT_SYMLINK_NOFOLLOW,
  CALL_DATA_BYTES,
  CALL_DATA_OFFSET,
  callData,
  createSystemCall,
  requireCallSuccess,
  SECOND_NAME_OFFSET,
  writeEmptyNameArgument,
  writeNameArgument,
} from './kernel.ts'
import { parseProcessStatus } from './processes.ts'

const getxattr = createSystemCall('getxattr')
const setxattr = createSystemCall('setxattr')
const listxattr = createSystemCall('listxattr')
const listxattrat = createSystemCall('listxattrat')
const removexattr = createSystemCall('removexattr')

// Results of a call.
const EPERM = -1
const ENOSYS = -38
const ENODATA = -61
const EOPNOTSUPP = -95

/** Returns undefined if the inode lacks the attribute, as most do: that case must not throw. */
export function getExtendedAttribute(handle: Handle, name: string): Uint8Array | undefined {
  const result = getxattr(
    writeNameArgument(formatMagicLink(handle)),
    writeNameArgument(name, SECOND_NAME_OFFSET),
    CALL_DATA_OFFSET,
    CALL_DATA_BYTES,
  )
  if (result === ENODATA || result === EOPNOTSUPP) return undefined
  return new Uint8Array(callData.subarray(0, requireCallSuccess(result, 'getxattr', name)))
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
const ATTRIBUTE_LIST_BYTES = 1024

/**
 * Calls listxattrat(2), Linux 6.13, by name, because a call through /proc takes several times as long. If it fails, the
 * list is read through the handle.
 */
export function listExtendedAttributeNames(handle: Handle, parent: Handle, name: EntryName): string {
  let size = lacksListxattrat
    ? ENOSYS
    : listxattrat(parent, writeNameArgument(name), AT_SYMLINK_NOFOLLOW, CALL_DATA_OFFSET, ATTRIBUTE_LIST_BYTES)
  recordListxattratResult(size)
  if (size < 0) size = listxattr(writeNameArgument(formatMagicLink(handle)), CALL_DATA_OFFSET, CALL_DATA_BYTES)
  if (size === 0 || size === EOPNOTSUPP) return ''
  return callData.toString('latin1', 0, requireCallSuccess(size, 'listxattr', 'an open handle'))
}

export function setExtendedAttribute(handle: Handle, name: string, value: Uint8Array): void {
  callData.set(value)
  requireCallSuccess(
    setxattr(
      writeNameArgument(formatMagicLink(handle)),
      writeNameArgument(name, SECOND_NAME_OFFSET),
      CALL_DATA_OFFSET,
      value.length,
      0,
    ),
    'setxattr',
    name,
  )
}

export function removeExtendedAttribute(handle: Handle, name: string): void {
  requireCallSuccess(
    removexattr(writeNameArgument(formatMagicLink(handle)), writeNameArgument(name, SECOND_NAME_OFFSET)),
    'removexattr',
    name,
  )
}

// The *xattr calls reject O_PATH descriptors (EBADF), and so does getxattrat(2) with AT_EMPTY_PATH. The magic link
// leads to exactly this inode, even if that is a symbolic link.
function formatMagicLink(handle: Handle): string {
  return `/proc/self/fd/${handle}`
}

const fchmodat2 = createSystemCall('fchmodat2')

const SET_GID_BIT = 0o2000
const CAP_FSETID = 4n

/**
 * Changes the mode of a handle's inode: fchmodat2(2), Linux 6.6.
 * @throws {SystemError}
 * @throws {Refusal} if the kernel cleared set-gid. chmod(2) does so without an error if the process is not in the group
 * and lacks CAP_FSETID. The inode is not at fault, so callers must not skip it
 */
export function chmod(handle: Handle, mode: number): void {
  setMode(handle, mode)
  if ((mode & SET_GID_BIT) === 0 || hasFsetidCapability()) return
  if ((fstatSync(handle).mode & SET_GID_BIT) !== 0) return
  throw Refusal.of('capability', 'chmod left set-gid out', 'give modekeep CAP_FSETID')
}

let hasCachedFsetid: boolean | undefined

/** Capabilities do not change while a call runs. */
function hasFsetidCapability(): boolean {
  if (hasCachedFsetid === undefined) {
    const { capabilities } = parseProcessStatus(readTextFile('/proc/thread-self/status'))
    hasCachedFsetid = (capabilities & (1n << CAP_FSETID)) !== 0n
  }
  return hasCachedFsetid
}

let lacksFchmodat2 = false

function setMode(handle: Handle, mode: number): void {
  // The handle's magic link leads to the same inode without a lookup of its name.
  const chmodByLink = () => chmodSync(`/proc/self/fd/${handle}`, mode)
  const result = lacksFchmodat2 ? ENOSYS : fchmodat2(handle, writeEmptyNameArgument(), mode, AT_EMPTY_PATH)
  // Filters of old container runtimes return EPERM for unknown calls. The magic link still works.
  const isFiltered = result === EPERM && hasCallSucceeded(chmodByLink)
  lacksFchmodat2 = isFiltered || result === ENOSYS
  if (result === ENOSYS) chmodByLink()
  else if (!isFiltered) requireCallSuccess(result, 'fchmodat2', 'an open handle')
}
