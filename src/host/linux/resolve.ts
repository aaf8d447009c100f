import { errorCode, FILE_TYPE, type Handle, SYMLINK, SystemError } from '../host.ts'
import {
  AT_EMPTY_PATH,
  AT_FDCWD,
  AT_NO_AUTOMOUNT,
  AT_SYMLINK_NOFOLLOW,
  O_CLOEXEC,
  O_DIRECTORY,
  O_NOFOLLOW,
  O_PATH,
  RESOLVE_BENEATH,
  RESOLVE_NO_MAGICLINKS,
  RESOLVE_NO_SYMLINKS,
  SYS_OPENAT2,
} from './constants.ts'
import { address, libc, put, run, view } from './libc.ts'
import { callStatx, readOwnership } from './statx.ts'

const HOLD = O_PATH | O_NOFOLLOW | O_CLOEXEC

// Linux 5.6 has it; asked once in a process.
let hasOpenat2 = true

export function openLinkFree(path: string): Handle {
  try {
    return openat2(AT_FDCWD, path, RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS)
  } catch (error) {
    if (errorCode(error) !== 'ENOSYS') throw error
    return openByParts(path)
  }
}

export function openBeneath(root: Handle, path: string): Handle {
  return openat2(root, path, RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS)
}

function openat2(directory: number, path: string, resolve: number): Handle {
  try {
    if (!hasOpenat2) throw new SystemError('openat2', 'ENOSYS', path)
    return run('openat2', path, () => {
      const how = view('struct')
      how.fill(0, 0, 24)
      // Without O_NOFOLLOW: with it, a link as the last part would be opened itself instead of refused or followed.
      how.writeBigUInt64LE(BigInt(O_PATH | O_CLOEXEC), 0)
      how.writeBigUInt64LE(BigInt(resolve), 16)
      return libc.syscall(SYS_OPENAT2, BigInt(directory), put('name', path), address('struct'), 24n, 0n, 0n)
    }) as Handle
  } catch (error) {
    if (errorCode(error) === 'ENOSYS') hasOpenat2 = false
    throw error
  }
}

/** RESOLVE_NO_SYMLINKS by hand. */
function openByParts(path: string): Handle {
  let here = open(AT_FDCWD, '/', HOLD)
  const parts = path.split('/').filter((part) => part !== '')
  for (const [index, part] of parts.entries()) {
    const parent = here
    try {
      here = openPart(parent, part, index < parts.length - 1 || path.endsWith('/'))
    } finally {
      libc.close(parent)
    }
  }
  return here
}

/** O_DIRECTORY also mounts what is mounted on demand (autofs), as a lookup of the whole path does. */
function openPart(parent: Handle, name: string, asDirectory: boolean): Handle {
  try {
    const handle = open(parent, name, asDirectory ? HOLD | O_DIRECTORY : HOLD)
    if (asDirectory || !isLink(handle, '')) return handle
    libc.close(handle)
  } catch (error) {
    if (errorCode(error) !== 'ENOTDIR' || !isLink(parent, name)) throw error
  }
  throw new SystemError('openat', 'ELOOP', name)
}

function isLink(handle: Handle, name: string): boolean {
  const flags = AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | (name === '' ? AT_EMPTY_PATH : 0)
  run('statx', name, () => callStatx(handle, put('name', name), flags))
  return (readOwnership().mode & FILE_TYPE) === SYMLINK
}

function open(parent: number, name: string, flags: number): Handle {
  return run('openat', name, () => libc.openat(parent, put('name', name), flags)) as Handle
}
