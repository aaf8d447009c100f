import { constants, readlinkSync } from 'node:fs'
import { createFault } from '../../errors/fault.ts'
import { DIRECTORY_TYPE, FILE_TYPE_MASK, type Handle, type Inodes, REGULAR_FILE_TYPE, tolerateErrno } from '../host.ts'
import { O_PATH } from '../path-handle.ts'
import { readTextFile } from '../read-file.ts'
import { refuseOnErrno } from '../system-error.ts'
import {
  chmod,
  getExtendedAttribute,
  listExtendedAttributeNames,
  removeExtendedAttribute,
  setExtendedAttribute,
} from './attributes.ts'
import { allocateFileChangeBatch, linuxStatBatches } from './batches.ts'
import { readFileSystemId, readFormerFileSystemId } from './file-system-id.ts'
import {
  AT_EMPTY_PATH,
  AT_FDCWD,
  CALL_DATA_BYTES,
  CALL_DATA_OFFSET,
  callData,
  createSystemCall,
  findSystemCallIndex,
  MAX_BATCH_CALLS,
  prepareSystemCall,
  requireCallSuccess,
  runPrepared,
  writeEmptyNameArgument,
  writeNameArgument,
} from './kernel.ts'
import {
  cachedOpens,
  closeDescriptor,
  deferDescriptorClose,
  isPathCached,
  OPEN_HANDLE_FLAGS,
  openAt,
  openLinkFree,
  openPathBeneath,
  readCachedMountType,
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

const lseek = createSystemCall('lseek')
const fchownat = createSystemCall('fchownat')
const closeCallIndex = findSystemCallIndex('close')
const dup = createSystemCall('dup')
const getdents64 = createSystemCall('getdents64')
const mknodat = createSystemCall('mknodat')
const mkdirat = createSystemCall('mkdirat')
const unlinkat = createSystemCall('unlinkat')
const sync = createSystemCall('sync')
const syncfs = createSystemCall('syncfs')

// (uid_t)-1
const KEEP_OWNER = 0xffffffff
const SEEK_SET = 0
const AT_REMOVEDIR = 0x200
const { O_DIRECTORY, O_NOATIME, O_NOFOLLOW, O_NONBLOCK, O_RDONLY } = constants
/** statvfs(3): set for a read-only mount or file system (fs/statfs.c, calculate_f_flags). */
const ST_RDONLY = 1
const READ_DIRECTORY_FLAGS = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK

export const linuxInodes: Inodes = {
  openLinkFree,
  knownType: readCachedMountType,
  isCached: isPathCached,
  cachedOpens,
  typeOfMount: readMountType,
  openBeneath: openPathBeneath,
  readLink,
  openTrusted: (path) => openAt(AT_FDCWD, path, O_PATH | O_DIRECTORY),

  // O_NOATIME: a walk must not change the access times of the directories that it reads.
  openDirectory(parent, name) {
    // In a user namespace only the owner of an inode may use O_NOATIME.
    const withoutAtime = tolerateErrno('EPERM', () => openAt(parent, name, READ_DIRECTORY_FLAGS | O_NOATIME))
    return withoutAtime ?? openAt(parent, name, READ_DIRECTORY_FLAGS)
  },

  openEntry: (parent, name) => openAt(parent, name, OPEN_HANDLE_FLAGS),
  close: closeDescriptor,

  closeAll(handles) {
    for (let start = 0; start < handles.length; start += MAX_BATCH_CALLS) {
      const count = Math.min(MAX_BATCH_CALLS, handles.length - start)
      for (let at = 0; at < count; at++) prepareSystemCall(at, closeCallIndex, handles[start + at])
      runPrepared(count)
    }
  },

  pathOf: (handle) => readlinkSync(`/proc/self/fd/${handle}`),
  stat: (handle) => viewHandleStat(handle).keep(),
  look: viewHandleStat,
  viewEntry: viewEntryStat,
  statBatches: () => linuxStatBatches,
  changes: allocateFileChangeBatch,
  ownership: readOwnership,
  statEntry: statName,
  queryEntry: (parent, name) => statName(parent, name, AT_STATX_FORCE_SYNC),
  statMountPoint: statUnsynced,
  createFile: (parent, name, mode) =>
    requireCallSuccess(mknodat(parent, writeNameArgument(name), REGULAR_FILE_TYPE | mode), 'mknodat', name),
  createDirectory: (parent, name, mode) =>
    requireCallSuccess(mkdirat(parent, writeNameArgument(name), mode), 'mkdirat', name),
  removeFile: (parent, name) => requireCallSuccess(unlinkat(parent, writeNameArgument(name), 0), 'unlinkat', name),
  removeDirectory: (parent, name) =>
    requireCallSuccess(unlinkat(parent, writeNameArgument(name), AT_REMOVEDIR), 'unlinkat', name),

  // node:fs would read a directory of a million entries into memory at once, and decode the names as text.
  readEntries(directory) {
    const size = requireCallSuccess(
      getdents64(directory, CALL_DATA_OFFSET, CALL_DATA_BYTES),
      'getdents64',
      'a directory',
    )
    return new Uint8Array(callData.subarray(0, size))
  },

  seekEntries(directory, next) {
    // On ext4 a position is a hash of 63 bits, which a JavaScript number cannot hold.
    callData.writeBigInt64LE(next)
    requireCallSuccess(lseek(directory, CALL_DATA_OFFSET, SEEK_SET), 'lseek', 'a directory')
  },

  chown: (handle, gid) =>
    requireCallSuccess(
      fchownat(handle, writeEmptyNameArgument(), KEEP_OWNER, gid, AT_EMPTY_PATH),
      'fchownat',
      'an open handle',
    ),
  chmod,
  handleLimit: () => Number(/^Max open files +(\d+)/m.exec(readTextFile('/proc/self/limits'))?.[1] ?? 1024),
  duplicate: (handle) => requireCallSuccess(dup(handle), 'fcntl', 'an open handle') as Handle,

  attributeNames: listExtendedAttributeNames,
  getAttribute: getExtendedAttribute,
  setAttribute: setExtendedAttribute,
  removeAttribute: removeExtendedAttribute,
  syncFileSystem,
  fileSystemId: readFileSystemId,
  formerFileSystemId: readFormerFileSystemId,
  isReadOnly: (handle) => (statFs(handle, 'a volume').flags & ST_RDONLY) !== 0,
  space: readSpaceUsage,
}

/**
 * syncfs(2) reports every failed write since the last sync. It rejects an O_PATH descriptor, and only a directory or a
 * regular file can be opened without side effects.
 * @throws {Refusal} if the disk failed to write
 */
function syncFileSystem(handle: Handle): void {
  const type = viewHandleStat(handle).mode & FILE_TYPE_MASK
  if (type !== DIRECTORY_TYPE && type !== REGULAR_FILE_TYPE) {
    sync()
    return
  }
  const [path, flags] =
    type === DIRECTORY_TYPE ? ['.', READ_DIRECTORY_FLAGS] : [`/proc/self/fd/${handle}`, O_RDONLY | O_NONBLOCK]
  const readable = openAt(type === DIRECTORY_TYPE ? handle : AT_FDCWD, path, flags, 'a volume')
  using _ = deferDescriptorClose(readable)
  const reason = 'the disk of the volume did not write every change'
  refuseOnErrno(
    () => requireCallSuccess(syncfs(readable), 'syncfs', 'the file system of a volume'),
    (message) => ({
      'EIO ENOSPC EDQUOT': createFault('disk-errors', reason, "check the node's kernel log and that disk", message),
    }),
  )
}
