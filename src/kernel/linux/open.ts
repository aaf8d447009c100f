import { constants } from 'node:fs'
import {
  type EntryName,
  FILE_TYPE_MASK,
  getErrno,
  type Handle,
  type Inodes,
  SYMLINK_TYPE,
  SystemError,
} from '../host.ts'
import { O_PATH } from '../path-handle.ts'
import { tolerateSystemErrors } from '../system-error.ts'
import {
  AT_FDCWD,
  CALL_DATA_BYTES,
  CALL_DATA_OFFSET,
  callData,
  createSystemCall,
  requireCallSuccess,
  writeEmptyNameArgument,
  writeNameArgument,
} from './kernel.ts'
import { readOwnership, statFs, statName, statUnsynced } from './statx.ts'

const openat = createSystemCall('openat')
const openat2 = createSystemCall('openat2')
const readlinkat = createSystemCall('readlinkat')
const closeHandle = createSystemCall('close')

// include/uapi/linux/{fcntl,openat2}.h; node:fs does not export them.
export const O_CLOEXEC = 0o2000000
const RESOLVE_NO_MAGICLINKS = 0x02
const RESOLVE_NO_SYMLINKS = 0x04
const RESOLVE_BENEATH = 0x08
// Linux 5.12
const RESOLVE_CACHED = 0x20

/** Opens an inode, also a link itself, without opening its content. */
export const OPEN_HANDLE_FLAGS = O_PATH | constants.O_NOFOLLOW

/** Opens an existing file by openat(2). @param target its name in messages @throws {SystemError} */
export function openAt(parent: number, name: EntryName | string, flags: number, target = name): Handle {
  return requireCallSuccess(openat(parent, writeNameArgument(name), flags | O_CLOEXEC), 'openat', target) as Handle
}

/** Linux closes the descriptor even if close(2) fails. */
export function closeDescriptor(handle: number): void {
  closeHandle(handle)
}

/** Closes a descriptor at the end of the block: `using _ = deferDescriptorClose(fd)`. */
export function deferDescriptorClose(fd: number): Disposable {
  return { [Symbol.dispose]: () => closeDescriptor(fd) }
}

// Linux 5.6 has it. One failed call disables it for the process.
let hasOpenat2 = true

export function openLinkFree(path: string): Handle {
  try {
    return openResolvedPath(AT_FDCWD, path, RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS)
  } catch (error) {
    if (getErrno(error) !== 'ENOSYS') throw error
    return openPathByParts(path)
  }
}

export function readCachedMountType(path: string): string | undefined {
  return tolerateSystemErrors(() => {
    const handle = openResolvedPath(AT_FDCWD, path, RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_CACHED)
    using _ = deferDescriptorClose(handle)
    return readMountType(statUnsynced(handle).mountId)
  })
}

export function isPathCached(path: string): boolean {
  try {
    closeDescriptor(openCachedPath(path))
    return true
  } catch (error) {
    const code = getErrno(error)
    if (code === undefined) throw error
    return code !== 'EAGAIN'
  }
}

/** Opens an absolute path and follows links. @throws {SystemError} EAGAIN if that could wait */
export function openCachedPath(path: string): Handle {
  return resolveCachedPath(AT_FDCWD, path, 0)
}

export const cachedOpens: Inodes['cachedOpens'] = {
  openLinkFree: (path: string) => resolveCachedPath(AT_FDCWD, path, RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS),
  openBeneath: (root: Handle, path: string) => resolveCachedPath(root, path, RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS),
  openEntry: (parent: Handle, name: EntryName) => resolveCachedPath(parent, name, 0, constants.O_NOFOLLOW),
}

/** A concurrent mount or move anywhere on the node makes the cache look incomplete. */
const MAX_CACHED_OPEN_ATTEMPTS = 3

function resolveCachedPath(directory: number, path: EntryName | string, resolveFlags: number, flags = 0): Handle {
  for (let attempt = 1; ; attempt++) {
    try {
      return openResolvedPath(directory, path, resolveFlags | RESOLVE_CACHED, flags)
    } catch (error) {
      const code = getErrno(error)
      // EINVAL: openat2 exists, but not the flag.
      if (code === 'ENOSYS' || code === 'EINVAL') throw new SystemError('openat2', 'EAGAIN', String(path))
      if (code !== 'EAGAIN' || attempt === MAX_CACHED_OPEN_ATTEMPTS) throw error
    }
  }
}

export function openPathBeneath(root: Handle, path: string): Handle {
  return openResolvedPath(root, path, RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS)
}

function openResolvedPath(directory: number, path: EntryName | string, resolveFlags: number, flags = 0): Handle {
  try {
    if (!hasOpenat2) throw new SystemError('openat2', 'ENOSYS', String(path))
    // struct open_how: flags, mode, resolve.
    callData.fill(0, 0, 24)
    // With O_NOFOLLOW a link in the last component would be opened itself, instead of rejected or followed.
    callData.writeBigUInt64LE(BigInt(O_PATH | O_CLOEXEC | flags), 0)
    callData.writeBigUInt64LE(BigInt(resolveFlags), 16)
    return requireCallSuccess(openat2(directory, writeNameArgument(path), CALL_DATA_OFFSET), 'openat2', path) as Handle
  } catch (error) {
    if (getErrno(error) === 'ENOSYS') hasOpenat2 = false
    throw error
  }
}

/** Does the work of RESOLVE_NO_SYMLINKS on older kernels. */
function openPathByParts(path: string): Handle {
  let handle = openAt(AT_FDCWD, '/', OPEN_HANDLE_FLAGS)
  const parts = path.split('/').filter((part) => part !== '')
  for (const [index, part] of parts.entries()) {
    using _ = deferDescriptorClose(handle)
    handle = openPathPart(handle, part, index < parts.length - 1 || path.endsWith('/'))
  }
  return handle
}

/** O_DIRECTORY also triggers an automount (autofs), as a lookup of the complete path does. */
function openPathPart(parent: Handle, name: string, asDirectory: boolean): Handle {
  try {
    const handle = openAt(parent, name, asDirectory ? OPEN_HANDLE_FLAGS | constants.O_DIRECTORY : OPEN_HANDLE_FLAGS)
    if (asDirectory || !isSymlink(readOwnership(handle))) return handle
    closeDescriptor(handle)
  } catch (error) {
    if (getErrno(error) !== 'ENOTDIR' || !isSymlink(statName(parent, name))) throw error
  }
  throw new SystemError('openat', 'ELOOP', name)
}

function isSymlink({ mode }: { mode: number }): boolean {
  return (mode & FILE_TYPE_MASK) === SYMLINK_TYPE
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
  const size = requireCallSuccess(
    readlinkat(handle, writeEmptyNameArgument(), CALL_DATA_OFFSET, CALL_DATA_BYTES),
    'readlinkat',
    'a link',
  )
  return Uint8Array.from(callData.subarray(0, size))
}

// Since Linux 6.8 the kernel reports single mounts. Before, the same facts need the complete mount table.
const statmount = createSystemCall('statmount')
const listmount = createSystemCall('listmount')

// include/uapi/linux/mount.h: struct mnt_id_req, struct statmount.
const STATMOUNT_MNT_BASIC = 0x2n
const STATMOUNT_FS_TYPE = 0x20n
const MOUNT_ID_REQUEST_BYTES = 24
const MOUNT_REPLY_OFFSET = MOUNT_ID_REQUEST_BYTES
const MOUNT_REPLY_BYTES = 1024
const [FS_TYPE, MNT_ATTR, TEXT] = [36, 64, 512]

/** Calls statmount(2), because statfs(2) would query a server. */
export function readMountType(mountId: number): string | undefined {
  writeMountIdRequest(mountId, STATMOUNT_FS_TYPE)
  if (statmount(CALL_DATA_OFFSET, CALL_DATA_OFFSET + MOUNT_REPLY_OFFSET, MOUNT_REPLY_BYTES) !== 0) return undefined
  const start = MOUNT_REPLY_OFFSET + TEXT + callData.readUInt32LE(MOUNT_REPLY_OFFSET + FS_TYPE)
  return callData.toString('latin1', start, callData.indexOf(0, start))
}

/** Calls statmount(2), because fstatfs(2) would query a server. */
export function readMountAttributes(mountId: number): number | undefined {
  writeMountIdRequest(mountId, STATMOUNT_MNT_BASIC)
  if (statmount(CALL_DATA_OFFSET, CALL_DATA_OFFSET + MOUNT_REPLY_OFFSET, MOUNT_REPLY_BYTES) !== 0) return undefined
  return Number(callData.readBigUInt64LE(MOUNT_REPLY_OFFSET + MNT_ATTR))
}

/** Calls listmount(2) with room for one mount. */
export function hasMountsOn(mountId: number): boolean | undefined {
  writeMountIdRequest(mountId, 0n)
  const count = listmount(CALL_DATA_OFFSET, CALL_DATA_OFFSET + MOUNT_REPLY_OFFSET)
  return count < 0 ? undefined : count > 0
}

function writeMountIdRequest(mountId: number, parameter: bigint): void {
  callData.fill(0, 0, MOUNT_ID_REQUEST_BYTES)
  callData.writeUInt32LE(MOUNT_ID_REQUEST_BYTES, 0)
  callData.writeBigUInt64LE(BigInt(mountId), 8)
  callData.writeBigUInt64LE(parameter, 16)
}
