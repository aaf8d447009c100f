import { errorCode, FILE_TYPE, type Handle, SYMLINK, SystemError } from '../host.ts'
import {
  AT_FDCWD,
  O_CLOEXEC,
  O_DIRECTORY,
  O_NOFOLLOW,
  O_PATH,
  RESOLVE_BENEATH,
  RESOLVE_NO_MAGICLINKS,
  RESOLVE_NO_SYMLINKS,
} from './constants.ts'
import { DATA, data, done, put, systemCall } from './kernel.ts'
import { close, openAt } from './open.ts'
import { ownershipOfHandle, statName } from './statx.ts'

const openat2 = systemCall('openat2')

const HOLD = O_PATH | O_NOFOLLOW | O_CLOEXEC

// Linux 5.6 has it; asked once in a process.
let hasOpenat2 = true

export function openLinkFree(path: string): Handle {
  try {
    return open(AT_FDCWD, path, RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS)
  } catch (error) {
    if (errorCode(error) !== 'ENOSYS') throw error
    return openByParts(path)
  }
}

export function openBeneath(root: Handle, path: string): Handle {
  return open(root, path, RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS)
}

function open(directory: number, path: string, resolve: number): Handle {
  try {
    if (!hasOpenat2) throw new SystemError('openat2', 'ENOSYS', path)
    // struct open_how: flags, mode, resolve.
    data.fill(0, 0, 24)
    // Without O_NOFOLLOW: with it, a link as the last part would be opened itself instead of refused or followed.
    data.writeBigUInt64LE(BigInt(O_PATH | O_CLOEXEC), 0)
    data.writeBigUInt64LE(BigInt(resolve), 16)
    return done(openat2(directory, put(path), DATA), 'openat2', path) as Handle
  } catch (error) {
    if (errorCode(error) === 'ENOSYS') hasOpenat2 = false
    throw error
  }
}

/** RESOLVE_NO_SYMLINKS by hand. */
function openByParts(path: string): Handle {
  let here = openAt(AT_FDCWD, '/', HOLD)
  const parts = path.split('/').filter((part) => part !== '')
  for (const [index, part] of parts.entries()) {
    const parent = here
    try {
      here = openPart(parent, part, index < parts.length - 1 || path.endsWith('/'))
    } finally {
      close(parent)
    }
  }
  return here
}

/** O_DIRECTORY also mounts what is mounted on demand (autofs), as a lookup of the whole path does. */
function openPart(parent: Handle, name: string, asDirectory: boolean): Handle {
  try {
    const handle = openAt(parent, name, asDirectory ? HOLD | O_DIRECTORY : HOLD)
    if (asDirectory || !isLink(ownershipOfHandle(handle))) return handle
    close(handle)
  } catch (error) {
    if (errorCode(error) !== 'ENOTDIR' || !isLink(statName(parent, name))) throw error
  }
  throw new SystemError('openat', 'ELOOP', name)
}

function isLink({ mode }: { mode: number }): boolean {
  return (mode & FILE_TYPE) === SYMLINK
}
