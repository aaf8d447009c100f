import { constants, fstatSync, ftruncateSync, openSync, statSync, writeSync } from 'node:fs'
import { basename, dirname } from 'node:path'
import { tolerateSystemErrors } from '../file-error.ts'
import { type Lock, tolerateErrno } from '../host.ts'
import { nodeFs } from '../node-fs.ts'
import { openPathHandle, reportDirectoryPath } from '../path-handle.ts'
import { openParent, openToWrite, removeNames } from '../write-file.ts'
import { isHeldByDyingProcess } from './dying-lock-holder.ts'
import { requireSuccess, systemCall } from './kernel.ts'
import { close, deferCloseFd } from './open.ts'

const flock = systemCall('flock')

const LOCK_SH = 1
const LOCK_EX = 2
const LOCK_NB = 4
const LOCK_UN = 8

/**
 * flock(2) on a file of its own, never blocking: that would freeze the event loop and with it every deadline.
 * Whoever held the lock before may have removed its file; others then lock a new one, so a lock on a file that is no
 * longer at its path means nothing and is not given.
 */
export function tryLockFile(path: string): Lock | undefined {
  return createLock(path, openLocked(path) ?? (removeFileOfDyingHolder(path) ? openLocked(path) : undefined))
}

/**
 * The same lock as a descriptor, which another process may get too: it is held until both have closed it. Its directory
 * is locked with others, so that nobody is just removing the file as a killed process' one.
 */
export function openLocked(path: string): number | undefined {
  using others = flockDirectory(dirname(path), LOCK_SH)
  if (others === undefined) return undefined
  return keepIfLocked(path, openToWrite(nodeFs, path, constants.O_RDWR | constants.O_CREAT, 0o600).fd, LOCK_EX)
}

/** As `tryLockFile`, but whoever is killed has it until he has ended; the file names this process, for messages. */
export function tryInheritedLock(path: string): Lock | undefined {
  const fd = openLocked(path)
  if (fd !== undefined) tolerateSystemErrors(() => writeHolder(fd, process.pid))
  return createLock(path, fd)
}

/** Writes into a lock's file which process has it. */
export function writeHolder(fd: number, pid: number | undefined): void {
  ftruncateSync(fd)
  writeSync(fd, String(pid ?? ''), 0)
}

/** flock(2) on a directory: no file comes or goes with it. */
export function tryLockDirectory(path: string): Lock | undefined {
  return flockDirectory(path, LOCK_EX)
}

function flockDirectory(path: string, how: number): Lock | undefined {
  // Behind a link of others it could be a directory of a server that does not respond.
  using held = openPathHandle(nodeFs, path, constants.O_DIRECTORY)
  return createLock(path, keepIfLocked(path, openSync(held.link, constants.O_RDONLY | constants.O_DIRECTORY), how))
}

function keepIfLocked(path: string, fd: number, how: number): number | undefined {
  let held = false
  try {
    held = tryFlock(fd, how) && isStillAt(path, fd)
  } finally {
    if (!held) close(fd)
  }
  return held ? fd : undefined
}

function createLock(path: string, fd: number | undefined): Lock | undefined {
  if (fd === undefined) return undefined
  let held = true
  const release: Lock['release'] = (discard) => {
    if (!held) return
    held = false
    using _ = deferUnlock(fd)
    if (discard) removeNames(nodeFs, dirname(path), [basename(path)])
  }
  return { release, [Symbol.dispose]: release }
}

export function isLockedFile(path: string): boolean {
  return isHeld(path, (fd) => !isHolderDying(path, fd))
}

/** The same of a file that a child may hold too, which lives on: who took the lock does not matter. */
export function isHeldByAnyProcess(path: string): boolean {
  return isHeld(path, () => true)
}

function isHeld(path: string, byWhom: (fd: number) => boolean): boolean {
  const fd = openExistingLock(path)
  if (fd === undefined) return false
  using _ = deferUnlock(fd)
  return !tryFlock(fd, LOCK_SH) && byWhom(fd)
}

/** A lock that is not there is nobody's. */
export function whileUnlocked<T>(path: string, look: () => T): T | 'locked' {
  const fd = openExistingLock(path)
  if (fd === undefined) return look()
  using _ = deferUnlock(fd)
  return tryFlock(fd, LOCK_SH) ? look() : 'locked'
}

/** When a lock's holder was last found alive, in milliseconds of this process. */
const aliveTimes = new Map<string, number>()
const RECHECK_INTERVAL_MS = 1000

/** Whoever waits for a lock asks again and again: /proc/locks stops all locks of the node for a moment. */
function isHolderDying(path: string, fd: number): boolean {
  const now = performance.now()
  if (now - (aliveTimes.get(path) ?? Number.NEGATIVE_INFINITY) < RECHECK_INTERVAL_MS) return false
  const isDoomed = isHeldByDyingProcess(path, fd)
  if (!isDoomed) aliveTimes.set(path, now)
  return isDoomed
}

/**
 * Makes room for another file where a killed errand has the lock for as long as a server makes it wait. The directory is
 * this process' alone meanwhile: nobody has just got the lock that the holder, dying, gave back.
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

/** Not by close(2) alone: whoever else has the descriptor, as a child that is just started, would hold the lock. */
function deferUnlock(fd: number): Disposable {
  return {
    [Symbol.dispose]() {
      flock(fd, LOCK_UN)
      close(fd)
    },
  }
}

function tryFlock(fd: number, how: number): boolean {
  return tolerateErrno('EAGAIN', () => requireSuccess(flock(fd, how | LOCK_NB), 'flock', 'a lock')) !== undefined
}

function isStillAt(path: string, fd: number): boolean {
  const here = statSync(path, { bigint: true, throwIfNoEntry: false })
  const held = fstatSync(fd, { bigint: true })
  return here?.ino === held.ino && here.dev === held.dev
}
