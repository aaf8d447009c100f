import { constants, readlinkSync } from 'node:fs'
import { createFault } from '../../errors/fault.ts'
import { DIRECTORY, FILE_TYPE, type Handle, type Inodes, REGULAR, tolerateErrno } from '../host.ts'
import { O_PATH } from '../path-handle.ts'
import { readText } from '../read-file.ts'
import { refuseOnErrno } from '../system-error.ts'
import { chmod, getAttribute, listAttributeNames, removeAttribute, setAttribute } from './attributes.ts'
import { allocateFileChanges, linuxStatBatches } from './batches.ts'
import { readFileSystemId, readFormerId } from './file-system-id.ts'
import {
  AT_EMPTY_PATH,
  AT_FDCWD,
  BLOCK_SIZE,
  DATA,
  data,
  findCallIndex,
  MAX_CALLS,
  prepareCall,
  putEmpty,
  putName,
  requireSuccess,
  runPrepared,
  systemCall,
} from './kernel.ts'
import {
  cachedOpens,
  close,
  deferCloseFd,
  HANDLE_FLAGS,
  isCached,
  openAt,
  openBeneath,
  openLinkFree,
  readCachedType,
  readLink,
  readMountType,
} from './open.ts'
import {
  AT_STATX_FORCE_SYNC,
  readOwnership,
  readSpaceUsage,
  statFs,
  statName,
  statUnsynced,
  viewEntryStat,
  viewHandleStat,
} from './statx.ts'

const lseek = systemCall('lseek')
const fchownat = systemCall('fchownat')
const closeCall = findCallIndex('close')
const dup = systemCall('dup')
const getdents64 = systemCall('getdents64')
const mknodat = systemCall('mknodat')
const mkdirat = systemCall('mkdirat')
const unlinkat = systemCall('unlinkat')
const sync = systemCall('sync')
const syncfs = systemCall('syncfs')

// (uid_t)-1
const KEEP_OWNER = 0xffffffff
const SEEK_SET = 0
const AT_REMOVEDIR = 0x200
const { O_DIRECTORY, O_NOATIME, O_NOFOLLOW, O_NONBLOCK, O_RDONLY } = constants
/** statvfs(3): set for a read-only mount or file system (fs/statfs.c, calculate_f_flags). */
const ST_RDONLY = 1
const READ_DIRECTORY = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK

export const linuxInodes: Inodes = {
  openLinkFree,
  knownType: readCachedType,
  isCached,
  cachedOpens,
  typeOfMount: readMountType,
  openBeneath,
  readLink,
  openTrusted: (path) => openAt(AT_FDCWD, path, O_PATH | O_DIRECTORY),

  // O_NOATIME: a walk must not change the access times of the directories that it reads.
  openDirectory(parent, name) {
    // In a user namespace only the owner of an inode may use O_NOATIME.
    const withoutAtime = tolerateErrno('EPERM', () => openAt(parent, name, READ_DIRECTORY | O_NOATIME))
    return withoutAtime ?? openAt(parent, name, READ_DIRECTORY)
  },

  openEntry: (parent, name) => openAt(parent, name, HANDLE_FLAGS),
  close,

  closeAll(handles) {
    for (let start = 0; start < handles.length; start += MAX_CALLS) {
      const count = Math.min(MAX_CALLS, handles.length - start)
      for (let at = 0; at < count; at++) prepareCall(at, closeCall, handles[start + at])
      runPrepared(count)
    }
  },

  pathOf: (handle) => readlinkSync(`/proc/self/fd/${handle}`),
  stat: (handle) => viewHandleStat(handle).keep(),
  look: viewHandleStat,
  viewEntry: viewEntryStat,
  statBatches: () => linuxStatBatches,
  changes: allocateFileChanges,
  ownership: readOwnership,
  statEntry: statName,
  queryEntry: (parent, name) => statName(parent, name, AT_STATX_FORCE_SYNC),
  statMountPoint: statUnsynced,
  createFile: (parent, name, mode) => requireSuccess(mknodat(parent, putName(name), REGULAR | mode), 'mknodat', name),
  createDirectory: (parent, name, mode) => requireSuccess(mkdirat(parent, putName(name), mode), 'mkdirat', name),
  removeFile: (parent, name) => requireSuccess(unlinkat(parent, putName(name), 0), 'unlinkat', name),
  removeDirectory: (parent, name) => requireSuccess(unlinkat(parent, putName(name), AT_REMOVEDIR), 'unlinkat', name),

  // node:fs would read a directory of a million entries into memory at once, and decode the names as text.
  readEntries(directory) {
    const size = requireSuccess(getdents64(directory, DATA, BLOCK_SIZE), 'getdents64', 'a directory')
    return new Uint8Array(data.subarray(0, size))
  },

  seekEntries(directory, next) {
    // On ext4 a position is a hash of 63 bits, which a JavaScript number cannot hold.
    data.writeBigInt64LE(next)
    requireSuccess(lseek(directory, DATA, SEEK_SET), 'lseek', 'a directory')
  },

  chown: (handle, gid) =>
    requireSuccess(fchownat(handle, putEmpty(), KEEP_OWNER, gid, AT_EMPTY_PATH), 'fchownat', 'an open handle'),
  chmod,
  handleLimit: () => Number(/^Max open files +(\d+)/m.exec(readText('/proc/self/limits'))?.[1] ?? 1024),
  duplicate: (handle) => requireSuccess(dup(handle), 'fcntl', 'an open handle') as Handle,

  attributeNames: listAttributeNames,
  getAttribute,
  setAttribute,
  removeAttribute,
  syncFileSystem,
  fileSystemId: readFileSystemId,
  formerFileSystemId: readFormerId,
  isReadOnly: (handle) => (statFs(handle, 'a volume').flags & ST_RDONLY) !== 0,
  space: readSpaceUsage,
}

/**
 * syncfs(2) reports every failed write since the last sync. It rejects an O_PATH descriptor, and only a directory or a
 * regular file can be opened without side effects.
 * @throws {Refusal} if the disk failed to write
 */
function syncFileSystem(handle: Handle): void {
  const type = viewHandleStat(handle).mode & FILE_TYPE
  if (type !== DIRECTORY && type !== REGULAR) {
    sync()
    return
  }
  const [path, flags] = type === DIRECTORY ? ['.', READ_DIRECTORY] : [`/proc/self/fd/${handle}`, O_RDONLY | O_NONBLOCK]
  const readable = openAt(type === DIRECTORY ? handle : AT_FDCWD, path, flags, 'a volume')
  using _ = deferCloseFd(readable)
  const reason = 'the disk of the volume did not write every change'
  refuseOnErrno(
    () => requireSuccess(syncfs(readable), 'syncfs', 'the file system of a volume'),
    (message) => ({
      'EIO ENOSPC EDQUOT': createFault('disk-errors', reason, "check the node's kernel log and that disk", message),
    }),
  )
}
