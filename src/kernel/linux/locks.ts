import { constants, fstatSync, ftruncateSync, openSync, statSync, writeSync } from 'node:fs'
import { basename, dirname } from 'node:path'
import { type Lock, tolerateErrno } from '../host.ts'
import { nodeFs, openPathHandle, reportDirectoryPath } from '../path-handle.ts'
import { tolerateSystemErrors } from '../system-error.ts'
import { openParent, openToWrite, removeNames } from '../write-file.ts'
import { requireSuccess, systemCall } from './kernel.ts'
import { isHeldByDyingProcess } from './lock-holders.ts'
import { close, deferCloseFd } from './open.ts'

const flock = systemCall('flock')

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
  return createLock(path, openLocked(path) ?? (removeFileOfDyingHolder(path) ? openLocked(path) : undefined))
}

/**
 * Takes the lock as a descriptor that a child process may inherit. The lock is held until both have closed it. A shared
 * lock on the directory prevents others from removing the file as that of a killed process.
 */
export function openLocked(path: string): number | undefined {
  using others = flockDirectory(dirname(path), LOCK_SH)
  if (others === undefined) return undefined
  return keepIfLocked(path, openToWrite(nodeFs, path, constants.O_RDWR | constants.O_CREAT, 0o600).fd, LOCK_EX)
}

/** Like `tryLockFile`, but a killed holder keeps the lock until it has ended. The file has the holder's pid. */
export function tryIsolatedLock(path: string): Lock | undefined {
  const fd = openLocked(path)
  if (fd !== undefined) tolerateSystemErrors(() => writeHolder(fd, process.pid))
  return createLock(path, fd)
}

/** Writes the pid of the holder into a lock file. */
export function writeHolder(fd: number, pid: number | undefined): void {
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
    keepIfLocked(path, openSync(directory.link, constants.O_RDONLY | constants.O_DIRECTORY), operation),
  )
}

function keepIfLocked(path: string, fd: number, operation: number): number | undefined {
  let isLocked = false
  try {
    isLocked = tryFlock(fd, operation) && isStillAt(path, fd)
  } finally {
    if (!isLocked) close(fd)
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
    if (discard) removeNames(nodeFs, dirname(path), [basename(path)])
  }
  return { release, [Symbol.dispose]: release }
}

export function isLockedFile(path: string): boolean {
  return isHeld(path, (fd) => !isHolderDying(path, fd))
}

/** Checks for any holder, including a child that inherited the lock and outlives the process that took it. */
export function isHeldByAnyProcess(path: string): boolean {
  return isHeld(path, () => true)
}

function isHeld(path: string, matchesHolder: (fd: number) => boolean): boolean {
  const fd = openExistingLock(path)
  if (fd === undefined) return false
  using _ = deferUnlock(fd)
  return !tryFlock(fd, LOCK_SH) && matchesHolder(fd)
}

/** A missing lock file means that no process holds the lock. */
export function whileUnlocked<T>(path: string, call: () => T): T | 'locked' {
  const fd = openExistingLock(path)
  if (fd === undefined) return call()
  using _ = deferUnlock(fd)
  return tryFlock(fd, LOCK_SH) ? call() : 'locked'
}

/** The time at which a lock's holder was last found alive, in milliseconds of this process. */
const aliveTimes = new Map<string, number>()
const RECHECK_INTERVAL_MS = 1000

/** Waiters poll, and reading /proc/locks blocks every lock operation on the node, so the result is cached. */
function isHolderDying(path: string, fd: number): boolean {
  const now = performance.now()
  if (now - (aliveTimes.get(path) ?? Number.NEGATIVE_INFINITY) < RECHECK_INTERVAL_MS) return false
  const isDoomed = isHeldByDyingProcess(path, fd)
  if (!isDoomed) aliveTimes.set(path, now)
  return isDoomed
}

/**
 * Removes the lock file of a killed isolated process that a server keeps waiting, so that another file can be locked.
 * The directory is locked meanwhile: no other process can take the lock that the dying holder releases.
 */
function removeFileOfDyingHolder(path: string): boolean {
  const fd = openExistingLock(path)
  if (fd === undefined) return true
  using _ = deferCloseFd(fd)
  if (!isHolderDying(path, fd)) return false
  using alone = tolerateErrno('ENOENT', () => tryLockDirectory(dirname(path)))
  if (alone === undefined || !isStillAt(path, fd) || !isHeldByDyingProcess(path, fd)) return false
  removeNames(nodeFs, dirname(path), [basename(path)])
  return true
}

function openExistingLock(path: string): number | undefined {
  return tolerateErrno('ENOENT', () => {
    using parent = openParent(nodeFs, dirname(path))
    const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK
    return reportDirectoryPath(parent.path, () => openSync(parent.at(basename(path)), flags))
  })
}

/** close(2) alone would not release the lock if a child that is being started also has the descriptor. */
function deferUnlock(fd: number): Disposable {
  return {
    [Symbol.dispose]() {
      flock(fd, LOCK_UN)
      close(fd)
    },
  }
}

function tryFlock(fd: number, operation: number): boolean {
  return tolerateErrno('EAGAIN', () => requireSuccess(flock(fd, operation | LOCK_NB), 'flock', 'a lock')) !== undefined
}

function isStillAt(path: string, fd: number): boolean {
  const current = statSync(path, { bigint: true, throwIfNoEntry: false })
  const opened = fstatSync(fd, { bigint: true })
  return current?.ino === opened.ino && current.dev === opened.dev
}
