import { constants } from 'node:fs'
import { errorCode, FILE_TYPE, type Handle, type Inodes, type Name, SYMLINK, SystemError } from '../host.ts'
import { O_PATH } from '../path-handle.ts'
import { tolerateSystemErrors } from '../system-error.ts'
import { AT_FDCWD, BLOCK_SIZE, DATA, data, putEmpty, putName, requireSuccess, systemCall } from './kernel.ts'
import { readOwnership, statFs, statName, statUnsynced } from './statx.ts'

const openat = systemCall('openat')
const openat2 = systemCall('openat2')
const readlinkat = systemCall('readlinkat')
const closeHandle = systemCall('close')

// include/uapi/linux/{fcntl,openat2}.h; node:fs does not export them.
export const O_CLOEXEC = 0o2000000
const RESOLVE_NO_MAGICLINKS = 0x02
const RESOLVE_NO_SYMLINKS = 0x04
const RESOLVE_BENEATH = 0x08
// Linux 5.12
const RESOLVE_CACHED = 0x20

/** Opens an inode, also a link itself, without opening its content. */
export const HANDLE_FLAGS = O_PATH | constants.O_NOFOLLOW

/** Opens an existing file by openat(2). @param target its name in messages @throws {SystemError} */
export function openAt(parent: number, name: Name | string, flags: number, target = name): Handle {
  return requireSuccess(openat(parent, putName(name), flags | O_CLOEXEC), 'openat', target) as Handle
}

/** Linux closes the descriptor even if close(2) fails. */
export function close(handle: number): void {
  closeHandle(handle)
}

/** Closes a descriptor at the end of the block: `using _ = deferCloseFd(fd)`. */
export function deferCloseFd(fd: number): Disposable {
  return { [Symbol.dispose]: () => close(fd) }
}

// Linux 5.6 has it. One failed call disables it for the process.
let hasOpenat2 = true

export function openLinkFree(path: string): Handle {
  try {
    return resolve(AT_FDCWD, path, RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS)
  } catch (error) {
    if (errorCode(error) !== 'ENOSYS') throw error
    return openByParts(path)
  }
}

export function readCachedType(path: string): string | undefined {
  return tolerateSystemErrors(() => {
    const handle = resolve(AT_FDCWD, path, RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_CACHED)
    using _ = deferCloseFd(handle)
    return readMountType(statUnsynced(handle).mountId)
  })
}

export function isCached(path: string): boolean {
  try {
    close(openCached(path))
    return true
  } catch (error) {
    const code = errorCode(error)
    if (code === undefined) throw error
    return code !== 'EAGAIN'
  }
}

/** Opens an absolute path and follows links. @throws {SystemError} EAGAIN if that could wait */
export function openCached(path: string): Handle {
  return resolveCached(AT_FDCWD, path, 0)
}

export const cachedOpens: Inodes['cachedOpens'] = {
  openLinkFree: (path: string) => resolveCached(AT_FDCWD, path, RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS),
  openBeneath: (root: Handle, path: string) => resolveCached(root, path, RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS),
  openEntry: (parent: Handle, name: Name) => resolveCached(parent, name, 0, constants.O_NOFOLLOW),
}

/** A concurrent mount or move anywhere on the node makes the cache look incomplete. */
const CACHED_ATTEMPTS = 3

function resolveCached(directory: number, path: Name | string, resolveFlags: number, flags = 0): Handle {
  for (let attempt = 1; ; attempt++) {
    try {
      return resolve(directory, path, resolveFlags | RESOLVE_CACHED, flags)
    } catch (error) {
      const code = errorCode(error)
      // EINVAL: openat2 exists, but not the flag.
      if (code === 'ENOSYS' || code === 'EINVAL') throw new SystemError('openat2', 'EAGAIN', String(path))
      if (code !== 'EAGAIN' || attempt === CACHED_ATTEMPTS) throw error
    }
  }
}

export function openBeneath(root: Handle, path: string): Handle {
  return resolve(root, path, RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS)
}

function resolve(directory: number, path: Name | string, resolveFlags: number, flags = 0): Handle {
  try {
    if (!hasOpenat2) throw new SystemError('openat2', 'ENOSYS', String(path))
    // struct open_how: flags, mode, resolve.
    data.fill(0, 0, 24)
    // With O_NOFOLLOW a link in the last component would be opened itself, instead of rejected or followed.
    data.writeBigUInt64LE(BigInt(O_PATH | O_CLOEXEC | flags), 0)
    data.writeBigUInt64LE(BigInt(resolveFlags), 16)
    return requireSuccess(openat2(directory, putName(path), DATA), 'openat2', path) as Handle
  } catch (error) {
    if (errorCode(error) === 'ENOSYS') hasOpenat2 = false
    throw error
  }
}

/** Does the work of RESOLVE_NO_SYMLINKS on older kernels. */
function openByParts(path: string): Handle {
  let handle = openAt(AT_FDCWD, '/', HANDLE_FLAGS)
  const parts = path.split('/').filter((part) => part !== '')
  for (const [index, part] of parts.entries()) {
    using _ = deferCloseFd(handle)
    handle = openPart(handle, part, index < parts.length - 1 || path.endsWith('/'))
  }
  return handle
}

/** O_DIRECTORY also triggers an automount (autofs), as a lookup of the complete path does. */
function openPart(parent: Handle, name: string, asDirectory: boolean): Handle {
  try {
    const handle = openAt(parent, name, asDirectory ? HANDLE_FLAGS | constants.O_DIRECTORY : HANDLE_FLAGS)
    if (asDirectory || !isLink(readOwnership(handle))) return handle
    close(handle)
  } catch (error) {
    if (errorCode(error) !== 'ENOTDIR' || !isLink(statName(parent, name))) throw error
  }
  throw new SystemError('openat', 'ELOOP', name)
}

function isLink({ mode }: { mode: number }): boolean {
  return (mode & FILE_TYPE) === SYMLINK
}

// include/uapi/linux/magic.h; the flag exists since Linux 5.10.
const ST_NOSYMFOLLOW = 0x2000
const PROC_SUPER_MAGIC = 0x9fa0
const SECURITYFS_MAGIC = 0x73636673

export function readLink(handle: Handle): Uint8Array {
  const { type, flags } = statFs(handle, 'a link')
  // Only these two file systems have magic links, which do not lead to the path in their text.
  if (type === PROC_SUPER_MAGIC || type === SECURITYFS_MAGIC || flags & ST_NOSYMFOLLOW) {
    throw new SystemError('readlinkat', 'ELOOP', 'a link')
  }
  const size = requireSuccess(readlinkat(handle, putEmpty(), DATA, BLOCK_SIZE), 'readlinkat', 'a link')
  return Uint8Array.from(data.subarray(0, size))
}

// Since Linux 6.8 the kernel reports single mounts. Before, the same facts need the complete mount table.
const statmount = systemCall('statmount')
const listmount = systemCall('listmount')

// include/uapi/linux/mount.h: struct mnt_id_req, struct statmount.
const STATMOUNT_MNT_BASIC = 0x2n
const STATMOUNT_FS_TYPE = 0x20n
const REQUEST_SIZE = 24
const REPLY_OFFSET = REQUEST_SIZE
const REPLY_SIZE = 1024
const [FS_TYPE, MNT_ATTR, TEXT] = [36, 64, 512]

/** Calls statmount(2), because statfs(2) would query a server. */
export function readMountType(mountId: number): string | undefined {
  putRequest(mountId, STATMOUNT_FS_TYPE)
  if (statmount(DATA, DATA + REPLY_OFFSET, REPLY_SIZE) !== 0) return undefined
  const start = REPLY_OFFSET + TEXT + data.readUInt32LE(REPLY_OFFSET + FS_TYPE)
  return data.toString('latin1', start, data.indexOf(0, start))
}

/** Calls statmount(2), because fstatfs(2) would query a server. */
export function readMountAttributes(mountId: number): number | undefined {
  putRequest(mountId, STATMOUNT_MNT_BASIC)
  if (statmount(DATA, DATA + REPLY_OFFSET, REPLY_SIZE) !== 0) return undefined
  return Number(data.readBigUInt64LE(REPLY_OFFSET + MNT_ATTR))
}

/** Calls listmount(2) with room for one mount. */
export function hasMountsOn(mountId: number): boolean | undefined {
  putRequest(mountId, 0n)
  const count = listmount(DATA, DATA + REPLY_OFFSET)
  return count < 0 ? undefined : count > 0
}

function putRequest(mountId: number, parameter: bigint): void {
  data.fill(0, 0, REQUEST_SIZE)
  data.writeUInt32LE(REQUEST_SIZE, 0)
  data.writeBigUInt64LE(BigInt(mountId), 8)
  data.writeBigUInt64LE(parameter, 16)
}
