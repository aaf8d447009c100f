import type { Handle } from '../host.ts'
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
