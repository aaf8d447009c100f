import type { Handle, Name } from '../host.ts'
import {
  AT_SYMLINK_NOFOLLOW,
  BLOCK_SIZE,
  DATA,
  data,
  putName,
  requireSuccess,
  SECOND_NAME,
  systemCall,
} from './kernel.ts'

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
  const result = getxattr(putName(formatMagicLink(handle)), putName(name, SECOND_NAME), DATA, BLOCK_SIZE)
  if (result === ENODATA || result === EOPNOTSUPP) return undefined
  return new Uint8Array(data.subarray(0, requireSuccess(result, 'getxattr', name)))
}

// Before Linux 6.13, and where a container runtime's filter does not know the call (EPERM from old ones). A wrong one
// would only make the names slower to ask for.
let lacksListxattrat = false

/** Whether listxattrat(2) is there, as far as was seen. */
export function hasListxattrat(): boolean {
  return !lacksListxattrat
}

/** @param result of listxattrat(2) */
export function recordListxattratResult(result: number): void {
  if (result === ENOSYS || result === EPERM) lacksListxattrat = true
}

// The kernel allocates a buffer of this size each time (fs/xattr.c); longer lists are asked for through the handle.
const MAX_NAME_BYTES = 1024

/**
 * listxattrat(2), Linux 6.13, on the name: through /proc it takes several times as long. What it cannot answer is asked
 * through the handle.
 */
export function attributeNames(handle: Handle, parent: Handle, name: Name): string {
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

// The *xattr calls refuse O_PATH descriptors (EBADF), getxattrat(2) with AT_EMPTY_PATH too. The magic link of one leads
// to the very inode, a symbolic link included.
function formatMagicLink(handle: Handle): string {
  return `/proc/self/fd/${handle}`
}
