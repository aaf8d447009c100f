import { createHash } from 'node:crypto'
import * as fs from 'node:fs'
import { homedir } from 'node:os'
import { basename, dirname, join } from 'node:path'

/** The user's cache directory of this project. Whatever is missing in it is made again. */
export const CACHE_DIRECTORY = join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'modekeep')

/** A part of a name in the cache that changes with the packages that are unpacked there. */
export function hashPackageNames(packages: readonly string[]): string {
  return createHash('sha256').update(packages.join()).digest('hex').slice(0, 8)
}

/**
 * The path of `name` in the cache; made by `make` in a directory of its own, if it is not there, and shown whole. Others that
 * want the same meanwhile wait for it.
 * @param name may have directories
 * @param make gets the path to make: a file or a directory
 */
export function provideCached(name: string, make: (path: string) => void): string {
  const path = join(CACHE_DIRECTORY, name)
  const lock = join(CACHE_DIRECTORY, `.lock-${name.replaceAll('/', '-')}`)
  fs.mkdirSync(CACHE_DIRECTORY, { recursive: true })
  while (!fs.existsSync(path)) {
    if (tryCacheLock(lock)) {
      try {
        createAtomically(path, make)
      } finally {
        fs.rmSync(lock, { force: true })
      }
    } else Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 100)
  }
  return path
}

function createAtomically(path: string, make: (path: string) => void): void {
  removeInterruptedFiles()
  const work = fs.mkdtempSync(join(CACHE_DIRECTORY, `.making-${process.pid}-`))
  try {
    make(join(work, basename(path)))
    fs.mkdirSync(dirname(path), { recursive: true })
    fs.renameSync(join(work, basename(path)), path)
  } catch (error) {
    // Another run was first.
    if (!fs.existsSync(path)) throw error
  } finally {
    fs.rmSync(work, { recursive: true, force: true })
  }
}

/** Whether the lock is now this process's: a symbolic link, which is made with its content in one step. */
function tryCacheLock(lock: string): boolean {
  try {
    fs.symlinkSync(String(process.pid), lock)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    if (!isProcessAlive(readCacheLockHolder(lock))) fs.rmSync(lock, { force: true })
    return false
  }
}

function readCacheLockHolder(lock: string): string {
  try {
    return fs.readlinkSync(lock)
  } catch {
    return ''
  }
}

const isProcessAlive = (pid: string) => fs.existsSync(`/proc/${pid}`)

/** Removes what runs that were interrupted have begun. */
function removeInterruptedFiles(): void {
  for (const name of fs.readdirSync(CACHE_DIRECTORY)) {
    const [, pid] = /^\.making-(\d+)-/.exec(name) ?? []
    if (pid && !isProcessAlive(pid)) fs.rmSync(join(CACHE_DIRECTORY, name), { recursive: true, force: true })
  }
}
