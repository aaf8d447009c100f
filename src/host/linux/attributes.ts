import type { Handle, Name } from '../host.ts'
import { AT_SYMLINK_NOFOLLOW, SYS_LISTXATTRAT } from './constants.ts'
import { address, lastErrorIs, libc, put, run, view } from './libc.ts'

const LARGEST = 65536n
const ENODATA = 61
const EOPNOTSUPP = 95
const NONE = Number.MAX_SAFE_INTEGER

/**
 * The value of an extended attribute of the inode a handle holds, undefined where it has none: for most inodes, so that
 * this plain answer must not cost an exception.
 */
export function getAttribute(handle: Handle, name: string): Uint8Array | undefined {
  const size = run('getxattr', name, () => {
    const result = libc.getxattr(put('name', magicLink(handle)), put('second', name), address('value'), LARGEST)
    return result < 0n && (lastErrorIs(ENODATA) || lastErrorIs(EOPNOTSUPP)) ? NONE : result
  })
  return size === NONE ? undefined : Uint8Array.from(view('value').subarray(0, size))
}

// Before Linux 6.13, and where a container runtime's filter does not know the call (EPERM from old ones). V8's own calls
// leave neither behind, and a wrong one would only make the names slower to ask for.
let noListxattrat = false
const ENOSYS = 38
const EPERM = 1

/**
 * listxattrat(2), Linux 6.13, on the name: through /proc it takes several times as long. What it cannot answer is asked
 * through the handle.
 */
export function attributeNames(handle: Handle, parent: Handle, name: Name): string {
  if (noListxattrat) return attributeNamesOf(handle)
  const list = address('value')
  const size = Number(libc.syscall(SYS_LISTXATTRAT, BigInt(parent), put('name', name), NOFOLLOW, list, LARGEST, 0n))
  if (size >= 0) return namesIn(size)
  noListxattrat = lastErrorIs(ENOSYS) || lastErrorIs(EPERM)
  return attributeNamesOf(handle)
}

const NOFOLLOW = BigInt(AT_SYMLINK_NOFOLLOW)

function attributeNamesOf(handle: Handle): string {
  const size = run('listxattr', 'an open handle', () => {
    const result = libc.listxattr(put('name', magicLink(handle)), address('value'), LARGEST)
    return result < 0n && lastErrorIs(EOPNOTSUPP) ? 0 : result
  })
  return namesIn(size)
}

function namesIn(size: number): string {
  return size === 0 ? '' : view('value').toString('latin1', 0, size)
}

export function setAttribute(handle: Handle, name: string, value: Uint8Array): void {
  run('setxattr', name, () => {
    view('value').set(value)
    return libc.setxattr(put('name', magicLink(handle)), put('second', name), address('value'), BigInt(value.length), 0)
  })
}

export function removeAttribute(handle: Handle, name: string): void {
  run('removexattr', name, () => libc.removexattr(put('name', magicLink(handle)), put('second', name)))
}

// The *xattr calls refuse O_PATH descriptors (EBADF), getxattrat(2) with AT_EMPTY_PATH too. The magic link of one leads
// to the very inode, a symbolic link included.
function magicLink(handle: Handle): string {
  return `/proc/self/fd/${handle}`
}
