import { readlinkSync } from 'node:fs'
import { errorCode, type Handle, type Inodes } from '../host.ts'
import { readText } from '../read-text.ts'
import { attributeNames, getAttribute, removeAttribute, setAttribute } from './attributes.ts'
import { chmod } from './chmod.ts'
import {
  AT_EMPTY_PATH,
  AT_FDCWD,
  O_CLOEXEC,
  O_DIRECTORY,
  O_NOATIME,
  O_NOFOLLOW,
  O_NONBLOCK,
  O_PATH,
  O_RDONLY,
} from './constants.ts'
import { createDirectory, createFile, readEntries, removeDirectory, removeFile } from './entries.ts'
import { fileSystemId } from './file-system-id.ts'
import { DATA, data, done, putEmpty, systemCall } from './kernel.ts'
import { close, openAt } from './open.ts'
import { readLink } from './read-link.ts'
import { openBeneath, openLinkFree } from './resolve.ts'
import { ownershipOfHandle, statHandle, statName, statUnsynced } from './statx.ts'

const lseek = systemCall('lseek')
const fchownat = systemCall('fchownat')
const dup = systemCall('dup')

// (uid_t)-1
const KEEP_OWNER = 0xffffffff
const SEEK_SET = 0
const READ_DIRECTORY = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC
const HOLD = O_PATH | O_NOFOLLOW | O_CLOEXEC

export const linuxInodes: Inodes = {
  openLinkFree,
  openBeneath,
  readLink,

  openTrusted(path) {
    return openAt(AT_FDCWD, path, O_PATH | O_DIRECTORY | O_CLOEXEC)
  },

  // O_NOATIME: a walk must not move the access times of the directories it reads.
  openDirectory(parent, name) {
    try {
      return openAt(parent, name, READ_DIRECTORY | O_NOATIME)
    } catch (error) {
      // In a user namespace only the owner of an inode may ask for O_NOATIME.
      if (errorCode(error) !== 'EPERM') throw error
      return openAt(parent, name, READ_DIRECTORY)
    }
  },

  openEntry(parent, name) {
    return openAt(parent, name, HOLD)
  },

  close,

  pathOf(handle) {
    return readlinkSync(`/proc/self/fd/${handle}`)
  },

  stat: statHandle,
  ownership: ownershipOfHandle,
  statEntry: statName,
  statMountPoint: statUnsynced,

  createFile,
  createDirectory,
  removeFile,
  removeDirectory,
  readEntries,

  seekEntries(directory, next) {
    // Hashes of 63 bits on ext4: no number of JavaScript's.
    data.writeBigInt64LE(next)
    done(lseek(directory, DATA, SEEK_SET), 'lseek', 'a directory')
  },

  chown(handle, gid) {
    done(fchownat(handle, putEmpty(), KEEP_OWNER, gid, AT_EMPTY_PATH), 'fchownat', 'an open handle')
  },

  chmod,

  handleLimit() {
    const limits = readText('/proc/self/limits')
    return Number(/^Max open files +(\d+)/m.exec(limits)?.[1] ?? 1024)
  },

  duplicate(handle) {
    return done(dup(handle), 'fcntl', 'an open handle') as Handle
  },

  tryDuplicate(handle) {
    const copy = dup(handle)
    return copy < 0 ? undefined : (copy as Handle)
  },

  attributeNames,
  getAttribute,
  setAttribute,
  removeAttribute,
  fileSystemId,
}
