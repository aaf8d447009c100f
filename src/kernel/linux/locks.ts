import { constants, fstatSync, ftruncateSync, openSync, statSync, writeSync } from 'node:fs'
import { basename, dirname } from 'node:path'
import { type Lock, tolerateErrno } from '../host.ts'
import { nodeFs, openPathHandle, showDirectoryPathInErrors } from '../path-handle.ts'
import { tolerateSystemErrors } from '../system-error.ts'
import { openFileToWrite, openParentDirectory, removeNamesInDirectory } from '../write-file.ts'
import { createSystemCall, requireCallSuccess } from './kernel.ts'
import { isLockHeldByDyingProcess } from './lock-holders.ts'
import { closeDescriptor, deferDescriptorClose } from './open.ts'

const flock = createSystemCall('flock')

const LOCK_SH = 1
const LOCK_EX = 2
const LOCK_NB = 4
const LOCK_UN = 8

/**
 * Takes flock(2) on a lock file. It never blocks, because that would stop the event loop and every deadline. An earlier
 * holder may have removed the file, so that other processes lock a new one. A lock on a file that is no longer at its
 * path is therefore not returned.
 */
export function tryLockFile(path: string): Lock | undefined {
  return createLock(
    path,
    openLockedFile(path) ?? (removeLockFileOfDyingHolder(path) ? openLockedFile(path) : undefined),
  )
}

/**
 * Takes the lock as a descriptor that a child process may inherit. The lock is held until both have closed it. A shared
 * lock on the directory prevents others from removing the file as that of a killed process.
 */
export function openLockedFile(path: string): number | undefined {
  using others = flockDirectory(dirname(path), LOCK_SH)
  if (others === undefined) return undefined
  return keepDescriptorIfLocked(
    path,
    openFileToWrite(nodeFs, path, constants.O_RDWR | constants.O_CREAT, 0o600).fd,
    LOCK_EX,
  )
}

/** Like `tryLockFile`, but a killed holder keeps the lock until it has ended. The file has the holder's pid. */
export function tryLockIsolatedFile(path: string): Lock | undefined {
  const fd = openLockedFile(path)
  if (fd !== undefined) tolerateSystemErrors(() => writeLockHolderPid(fd, process.pid))
  return createLock(path, fd)
}

/** Writes the pid of the holder into a lock file. */
export function writeLockHolderPid(fd: number, pid: number | undefined): void {
  ftruncateSync(fd)
  writeSync(fd, String(pid ?? ''), 0)
}

/** Takes flock(2) on a directory, which needs no lock file. */
export function tryLockDirectory(path: string): Lock | undefined {
  return flockDirectory(path, LOCK_EX)
}

function flockDirectory(path: string, operation: number): Lock | undefined {
  // A link of another user could lead to a directory of an unresponsive server.
  using directory = openPathHandle(nodeFs, path, constants.O_DIRECTORY)
  return createLock(
    path,
    keepDescriptorIfLocked(path, openSync(directory.link, constants.O_RDONLY | constants.O_DIRECTORY), operation),
  )
}

function keepDescriptorIfLocked(path: string, fd: number, operation: number): number | undefined {
  let isLocked = false
  try {
    isLocked = tryFlock(fd, operation) && isFileStillAtPath(path, fd)
  } finally {
    if (!isLocked) closeDescriptor(fd)
  }
  return isLocked ? fd : undefined
}

function createLock(path: string, fd: number | undefined): Lock | undefined {
  if (fd === undefined) return undefined
  let isHeldNow = true
  const release: Lock['release'] = (discard) => {
    if (!isHeldNow) return
    isHeldNow = false
    using _ = deferUnlock(fd)
    if (discard) removeNamesInDirectory(nodeFs, dirname(path), [basename(path)])
  }
  return { release, [Symbol.dispose]: release }
}

export function isLockedFile(path: string): boolean {
  return isLockHeldBy(path, (fd) => !isLockHolderDying(path, fd))
}

/** Checks for any holder, including a child that inherited the lock and outlives the process that took it. */
export function isLockHeldByAnyProcess(path: string): boolean {
  return isLockHeldBy(path, () => true)
}

function isLockHeldBy(path: string, matchesHolder: (fd: number) => boolean): boolean {
  const fd = openExistingLockFile(path)
  if (fd === undefined) return false
  using _ = deferUnlock(fd)
  return !tryFlock(fd, LOCK_SH) && matchesHolder(fd)
}

/** A missing lock file means that no process holds the lock. */
export function callWhileUnlocked<T>(path: string, call: () => T): T | 'locked' {
  const fd = openExistingLockFile(path)
  if (fd === undefined) return call()
  using _ = deferUnlock(fd)
  return tryFlock(fd, LOCK_SH) ? call() : 'locked'
}

/** The time at which a lock's holder was last found alive, in milliseconds of this process. */
const lockHolderAliveTimes = new Map<string, number>()
const HOLDER_RECHECK_INTERVAL_MS = 1000

/** Waiters poll, and reading /proc/locks blocks every lock operation on the node, so the result is cached. */
function isLockHolderDying(path: string, fd: number): boolean {
  const now = performance.now()
  if (now - (lockHolderAliveTimes.get(path) ?? Number.NEGATIVE_INFINITY) < HOLDER_RECHECK_INTERVAL_MS) return false
  const isDoomed = isLockHeldByDyingProcess(path, fd)
  if (!isDoomed) lockHolderAliveTimes.set(path, now)
  return isDoomed
}

/**
 * Removes the lock file of a killed isolated process that a server keeps waiting, so that another file can be locked.
 * The directory is locked meanwhile: no other process can take the lock that the dying holder releases.
 */
function removeLockFileOfDyingHolder(path: string): boolean {
  const fd = openExistingLockFile(path)
  if (fd === undefined) return true
  using _ = deferDescriptorClose(fd)
  if (!isLockHolderDying(path, fd)) return false
  using alone = tolerateErrno('ENOENT', () => tryLockDirectory(dirname(path)))
  if (alone === undefined || !isFileStillAtPath(path, fd) || !isLockHeldByDyingProcess(path, fd)) return false
  removeNamesInDirectory(nodeFs, dirname(path), [basename(path)])
  return true
}

function openExistingLockFile(path: string): number | undefined {
  return tolerateErrno('ENOENT', () => {
    using parent = openParentDirectory(nodeFs, dirname(path))
    const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK
    return showDirectoryPathInErrors(parent.path, () => openSync(parent.at(basename(path)), flags))
  })
}

/** close(2) alone would not release the lock if a child that is being started also has the descriptor. */
function deferUnlock(fd: number): Disposable {
  return {
    [Symbol.dispose]() {
      flock(fd, LOCK_UN)
      closeDescriptor(fd)
    },
  }
}

function tryFlock(fd: number, operation: number): boolean {
  return (
    tolerateErrno('EAGAIN', () => requireCallSuccess(flock(fd, operation | LOCK_NB), 'flock', 'a lock')) !== undefined
  )
}

function isFileStillAtPath(path: string, fd: number): boolean {
  const current = statSync(path, { bigint: true, throwIfNoEntry: false })
  const opened = fstatSync(fd, { bigint: true })
  return current?.ino === opened.ino && current.dev === opened.dev
}
