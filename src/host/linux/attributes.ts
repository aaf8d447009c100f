import type { Handle, Name } from '../host.ts'
import { AT_SYMLINK_NOFOLLOW, BLOCK, DATA, data, done, put, SECOND, systemCall } from './kernel.ts'

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

/**
 * The value of an extended attribute of the inode a handle holds, undefined where it has none: for most inodes, so that
 * this plain answer must not cost an exception.
 */
export function getAttribute(handle: Handle, name: string): Uint8Array | undefined {
  const result = getxattr(put(magicLink(handle)), put(name, SECOND), DATA, BLOCK)
  if (result === ENODATA || result === EOPNOTSUPP) return undefined
  return new Uint8Array(data.subarray(0, done(result, 'getxattr', name)))
}

// Before Linux 6.13, and where a container runtime's filter does not know the call (EPERM from old ones). A wrong one
// would only make the names slower to ask for.
let noListxattrat = false

/** Whether listxattrat(2) is there, as far as was seen. */
export function listsByName(): boolean {
  return !noListxattrat
}

/** @param result of listxattrat(2) */
export function noteListing(result: number): void {
  if (result === ENOSYS || result === EPERM) noListxattrat = true
}

// The kernel allocates a buffer of this size each time (fs/xattr.c); longer lists are asked for through the handle.
const MOST_NAMES = 1024

/**
 * listxattrat(2), Linux 6.13, on the name: through /proc it takes several times as long. What it cannot answer is asked
 * through the handle.
 */
export function attributeNames(handle: Handle, parent: Handle, name: Name): string {
  let size = noListxattrat ? ENOSYS : listxattrat(parent, put(name), AT_SYMLINK_NOFOLLOW, DATA, MOST_NAMES)
  noteListing(size)
  if (size < 0) size = listxattr(put(magicLink(handle)), DATA, BLOCK)
  if (size === 0 || size === EOPNOTSUPP) return ''
  return data.toString('latin1', 0, done(size, 'listxattr', 'an open handle'))
}

export function setAttribute(handle: Handle, name: string, value: Uint8Array): void {
  data.set(value)
  done(setxattr(put(magicLink(handle)), put(name, SECOND), DATA, value.length, 0), 'setxattr', name)
}

export function removeAttribute(handle: Handle, name: string): void {
  done(removexattr(put(magicLink(handle)), put(name, SECOND)), 'removexattr', name)
}

// The *xattr calls refuse O_PATH descriptors (EBADF), getxattrat(2) with AT_EMPTY_PATH too. The magic link of one leads
// to the very inode, a symbolic link included.
function magicLink(handle: Handle): string {
  return `/proc/self/fd/${handle}`
}
