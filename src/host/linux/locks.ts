import { closeSync, constants, fstatSync, openSync, rmSync, statSync } from 'node:fs'
import { errorCode, type Lock } from '../host.ts'
import { LOCK_EX, LOCK_NB, LOCK_SH } from './constants.ts'
import { done, systemCall } from './kernel.ts'

const flock = systemCall('flock')

/**
 * flock(2) on a file of its own, never blocking: that would freeze the event loop and with it every deadline.
 * Whoever held the lock before may have removed its file; others then lock a new one, so a lock on a file that is no
 * longer at its path means nothing and is not given.
 */
export function tryLockFile(path: string): Lock | undefined {
  return tryLockAt(path, openSync(path, constants.O_RDWR | constants.O_CREAT | constants.O_NOFOLLOW, 0o600))
}

/** flock(2) on a directory: no file comes or goes with it. */
export function tryLockDirectory(path: string): Lock | undefined {
  return tryLockAt(path, openSync(path, constants.O_RDONLY | constants.O_DIRECTORY))
}

function tryLockAt(path: string, fd: number): Lock | undefined {
  let held = false
  try {
    held = tryLock(fd) && isStillAt(path, fd)
  } finally {
    if (!held) closeSync(fd)
  }
  if (!held) return undefined
  return {
    release(discard) {
      if (!held) return
      held = false
      release(path, fd, discard)
    },
  }
}

/** A lock that is not there is nobody's. */
export function isLockedFile(path: string): boolean {
  let fd: number
  try {
    fd = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW)
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return false
    throw error
  }
  try {
    return !tryLock(fd, LOCK_SH)
  } finally {
    closeSync(fd)
  }
}

function tryLock(fd: number, how = LOCK_EX): boolean {
  try {
    done(flock(fd, how | LOCK_NB), 'flock', 'a lock')
    return true
  } catch (error) {
    if (errorCode(error) === 'EAGAIN') return false
    throw error
  }
}

function isStillAt(path: string, fd: number): boolean {
  const here = statSync(path, { bigint: true, throwIfNoEntry: false })
  const held = fstatSync(fd, { bigint: true })
  return here?.ino === held.ino && here.dev === held.dev
}

function release(path: string, fd: number, discard = false): void {
  try {
    if (discard) rmSync(path, { force: true })
  } finally {
    closeAnyway(fd)
  }
}

/** Linux has closed a descriptor whatever close(2) answers, and of a lock nothing was to be written. */
function closeAnyway(fd: number): void {
  try {
    closeSync(fd)
  } catch {
    // The work that was done under the lock stays done.
  }
}
