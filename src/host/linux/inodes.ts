import { readlinkSync } from 'node:fs'
import { errorCode, type Handle, type Inodes, type Name } from '../host.ts'
import { readText } from '../read-text.ts'
import { attributeNames, getAttribute, removeAttribute, setAttribute } from './attributes.ts'
import { chmod } from './chmod.ts'
import {
  AT_EMPTY_PATH,
  AT_FDCWD,
  AT_NO_AUTOMOUNT,
  AT_STATX_DONT_SYNC,
  AT_SYMLINK_NOFOLLOW,
  F_DUPFD_CLOEXEC,
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
import { EMPTY_PATH, libc, put, run } from './libc.ts'
import { readLink } from './read-link.ts'
import { openBeneath, openLinkFree } from './resolve.ts'
import { callStatx, readOwnership, readStat } from './statx.ts'

// (uid_t)-1
const KEEP_OWNER = 0xffffffff
const READ_DIRECTORY = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC
const STAT_HANDLE = AT_EMPTY_PATH | AT_NO_AUTOMOUNT
const STAT_NAME = AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT
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

  close(handle) {
    libc.close(handle)
  },

  pathOf(handle) {
    return readlinkSync(`/proc/self/fd/${handle}`)
  },

  // These, openAt and chown are called for every inode of a volume: a first attempt that succeeds needs no closure.
  stat(handle) {
    if (callStatx(handle, EMPTY_PATH, STAT_HANDLE) < 0)
      run('statx', 'an open handle', () => callStatx(handle, EMPTY_PATH, STAT_HANDLE))
    return readStat()
  },

  ownership(handle) {
    if (callStatx(handle, EMPTY_PATH, STAT_HANDLE) < 0)
      run('statx', 'an open handle', () => callStatx(handle, EMPTY_PATH, STAT_HANDLE))
    return readOwnership()
  },

  statEntry(parent, name) {
    if (callStatx(parent, put('name', name), STAT_NAME) < 0)
      run('statx', name, () => callStatx(parent, put('name', name), STAT_NAME))
    return readStat()
  },

  statMountPoint(parent, name) {
    const which = name === undefined ? STAT_HANDLE : STAT_NAME
    run('statx', name ?? 'an open handle', () =>
      callStatx(parent, name === undefined ? EMPTY_PATH : put('name', name), which | AT_STATX_DONT_SYNC),
    )
    return readStat()
  },

  createFile,
  createDirectory,
  removeFile,
  removeDirectory,
  readEntries,

  seekEntries(directory, next) {
    run('lseek', 'a directory', () => libc.lseek(directory, next, 0))
  },

  chown(handle, gid) {
    if (libc.fchownat(handle, EMPTY_PATH, KEEP_OWNER, gid, AT_EMPTY_PATH) >= 0) return
    run('fchownat', 'an open handle', () => libc.fchownat(handle, EMPTY_PATH, KEEP_OWNER, gid, AT_EMPTY_PATH))
  },

  chmod,

  handleLimit() {
    const limits = readText('/proc/self/limits')
    return Number(/^Max open files +(\d+)/m.exec(limits)?.[1] ?? 1024)
  },

  duplicate(handle) {
    return run('fcntl', 'an open handle', () => libc.fcntl(handle, F_DUPFD_CLOEXEC, 0)) as Handle
  },

  tryDuplicate(handle) {
    const copy = libc.fcntl(handle, F_DUPFD_CLOEXEC, 0)
    return copy < 0 ? undefined : (copy as Handle)
  },

  attributeNames,
  getAttribute,
  setAttribute,
  removeAttribute,
  fileSystemId,
}

function openAt(parent: number, name: Name | string, flags: number): Handle {
  const handle = libc.openat(parent, put('name', name), flags)
  if (handle >= 0) return handle as Handle
  return run('openat', name, () => libc.openat(parent, put('name', name), flags)) as Handle
}
