import { constants, readlinkSync } from 'node:fs'
import { DIRECTORY, FILE_TYPE, type Handle, type Inodes, REGULAR, unless } from '../host.ts'
import { O_PATH } from '../path-handle.ts'
import { readText } from '../read-file.ts'
import { attributeNames, getAttribute, removeAttribute, setAttribute } from './attributes.ts'
import { linuxChanges } from './changes.ts'
import { chmod } from './chmod.ts'
import { readFileSystemId, readFormerId } from './file-system-id.ts'
import {
  AT_EMPTY_PATH,
  AT_FDCWD,
  BLOCK,
  callNamed,
  DATA,
  data,
  done,
  prepare,
  put,
  putEmpty,
  ROWS,
  runPrepared,
  systemCall,
} from './kernel.ts'
import { typeOfMount } from './mount-query.ts'
import {
  cachedOpens,
  close,
  closingFd,
  HOLD,
  isCached,
  knownType,
  openAt,
  openBeneath,
  openLinkFree,
  readLink,
} from './open.ts'
import { linuxSights } from './sights.ts'
import {
  AT_STATX_FORCE_SYNC,
  lookAtHandle,
  lookAtName,
  ownershipOfHandle,
  spaceOf,
  statFs,
  statName,
  statUnsynced,
} from './statx.ts'

const lseek = systemCall('lseek')
const fchownat = systemCall('fchownat')
const closeCall = callNamed('close')
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
/** statvfs(3): of the mount or of the file system (fs/statfs.c, calculate_f_flags). */
const ST_RDONLY = 1
const READ_DIRECTORY = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK

export const linuxInodes: Inodes = {
  openLinkFree,
  knownType,
  isCached,
  cachedOpens,
  typeOfMount,
  openBeneath,
  readLink,
  openTrusted: (path) => openAt(AT_FDCWD, path, O_PATH | O_DIRECTORY),

  // O_NOATIME: a walk must not move the access times of the directories it reads.
  openDirectory(parent, name) {
    // In a user namespace only the owner of an inode may ask for O_NOATIME.
    const quiet = unless('EPERM', () => openAt(parent, name, READ_DIRECTORY | O_NOATIME))
    return quiet ?? openAt(parent, name, READ_DIRECTORY)
  },

  openEntry: (parent, name) => openAt(parent, name, HOLD),
  close,

  closeAll(handles) {
    for (let from = 0; from < handles.length; from += ROWS) {
      const count = Math.min(ROWS, handles.length - from)
      for (let at = 0; at < count; at++) prepare(at, closeCall, handles[from + at])
      runPrepared(count)
    }
  },

  pathOf: (handle) => readlinkSync(`/proc/self/fd/${handle}`),
  stat: (handle) => lookAtHandle(handle).keep(),
  look: lookAtHandle,
  lookEntry: lookAtName,
  sights: () => linuxSights,
  changes: linuxChanges,
  ownership: ownershipOfHandle,
  statEntry: statName,
  askEntry: (parent, name) => statName(parent, name, AT_STATX_FORCE_SYNC),
  statMountPoint: statUnsynced,
  createFile: (parent, name, mode) => done(mknodat(parent, put(name), REGULAR | mode), 'mknodat', name),
  createDirectory: (parent, name, mode) => done(mkdirat(parent, put(name), mode), 'mkdirat', name),
  removeFile: (parent, name) => done(unlinkat(parent, put(name), 0), 'unlinkat', name),
  removeDirectory: (parent, name) => done(unlinkat(parent, put(name), AT_REMOVEDIR), 'unlinkat', name),

  // node:fs would read a directory of a million entries into memory at once, and turn names into text.
  readEntries(directory) {
    const size = done(getdents64(directory, DATA, BLOCK), 'getdents64', 'a directory')
    return new Uint8Array(data.subarray(0, size))
  },

  seekEntries(directory, next) {
    // Hashes of 63 bits on ext4: no number of JavaScript's.
    data.writeBigInt64LE(next)
    done(lseek(directory, DATA, SEEK_SET), 'lseek', 'a directory')
  },

  chown: (handle, gid) =>
    done(fchownat(handle, putEmpty(), KEEP_OWNER, gid, AT_EMPTY_PATH), 'fchownat', 'an open handle'),
  chmod,
  handleLimit: () => Number(/^Max open files +(\d+)/m.exec(readText('/proc/self/limits'))?.[1] ?? 1024),
  duplicate: (handle) => done(dup(handle), 'fcntl', 'an open handle') as Handle,

  tryDuplicate(handle) {
    const copy = dup(handle)
    return copy < 0 ? undefined : (copy as Handle)
  },

  attributeNames,
  getAttribute,
  setAttribute,
  removeAttribute,
  syncFileSystem,
  fileSystemId: readFileSystemId,
  formerFileSystemId: readFormerId,
  isReadOnly: (handle) => (statFs(handle, 'a volume').flags & ST_RDONLY) !== 0,
  space: spaceOf,
}

const NOT_WRITTEN = () => "its disk did not write every change: check the node's kernel log and that disk"

/** syncfs(2) rejects an O_PATH descriptor, and only a directory or a regular file can be opened without side effects. */
function syncFileSystem(handle: Handle): void {
  const type = lookAtHandle(handle).mode & FILE_TYPE
  if (type !== DIRECTORY && type !== REGULAR) {
    sync()
    return
  }
  const [path, flags] = type === DIRECTORY ? ['.', READ_DIRECTORY] : [`/proc/self/fd/${handle}`, O_RDONLY | O_NONBLOCK]
  const readable = openAt(type === DIRECTORY ? handle : AT_FDCWD, path, flags, 'a volume')
  using _ = closingFd(readable)
  done(syncfs(readable), 'syncfs', 'the file system of a volume', NOT_WRITTEN)
}
