import type * as NodeFs from 'node:fs'
import { basename, dirname } from 'node:path'
import { tolerateSystemErrors, withPath } from './file-error.ts'
import { createNewFile, openForeignFile } from './large-file.ts'
import { makeDirectories } from './make-directory.ts'
import { isOwnersFile } from './path-handle.ts'
import { type Fs, nodeFs, readBounded } from './read-file.ts'
import { retryWhileRemoved } from './retry-while-removed.ts'
import { errorCode, SystemError, tolerateErrno } from './system-error.ts'
import {
  callByHandle,
  formatTemporaryName,
  listNames,
  openParent,
  openToWrite,
  removeNames,
  renamePath,
  replaceFile,
} from './write-file.ts'

const PRIVATE = 0o600
const OWN_DIRECTORY = 0o700
const MAX_FOREIGN_BYTES = 1 << 20
/** The largest record, that of a heal of a node with thousands of mounts, has a few MiB. */
const MAX_OWN_BYTES = 1 << 26
const { O_APPEND, O_CREAT, O_TRUNC, O_WRONLY } = nodeFs.constants

/** What would lie in a file that is no directory is missing too. */
const MISSING_CODES = 'ENOENT ENOTDIR'
const NO_THROW = { throwIfNoEntry: false } as const

/** As stat(2) tells it. */
export type FileStat = Pick<NodeFs.Stats, 'dev' | 'ino' | 'mode' | 'uid' | 'gid'>

export type TrustedFiles = ReturnType<typeof createTrustedFiles>

/**
 * modekeep's own files, below directories that only root can write. Paths are absolute. Each method but `removeEmpty`
 * throws a FileError that names the path.
 */
export function createTrustedFiles(fs: Fs) {
  const sync = (directory: string) => {
    using parent = openParent(fs, directory)
    parent.sync()
  }
  return {
    /** Undefined where there is none. @throws {FileError} EPERM for a file of another user's than root's */
    read: (path: string) => withPath('read', path, () => tolerateErrno(MISSING_CODES, () => readOwnFile(fs, path))),

    /** Whether there is one. Where there is none that costs far less than to read it. */
    has: (path: string) =>
      withPath('look at', path, () => tolerateErrno(MISSING_CODES, () => fs.statSync(path, NO_THROW)) !== undefined),

    /** A file at a path that somebody else names, as `openToRead` opens it: at most 1 MiB, unless more is expected. */
    readForeign: (path: string, most = MAX_FOREIGN_BYTES) =>
      withPath('read', path, () => tolerateErrno(MISSING_CODES, () => readBounded(fs, path, most).text)),

    /** The same of any size, held open: each read is of the file that was looked at. */
    openForeign: (path: string) => withPath('read', path, () => openForeignFile(fs, path)),

    /** Of what a path leads to; undefined where nothing is, or where it cannot be seen. */
    stat: (path: string): FileStat | undefined => tolerateSystemErrors(() => fs.statSync(path)),

    /**
     * When what a path leads to was made, or last changed where the file system does not know, in milliseconds since
     * 1970; undefined where nothing is, or where it cannot be seen.
     */
    born: (path: string): number | undefined =>
      tolerateSystemErrors(() => {
        const { birthtimeMs, ctimeMs } = fs.statSync(path)
        return birthtimeMs > 0 ? birthtimeMs : ctimeMs
      }),

    /**
     * Atomic and durable: temporary file, fsync, rename, fsync of the directory. No link is followed, in whosever
     * directory. One process at a time for each path: what is left of another's `PATH.new` is removed.
     */
    replace: (path: string, text: string, mode = PRIVATE) =>
      withPath('write', path, () => replaceFile(fs, path, text, mode)),

    /** The same, but that after a crash of the node the file may be empty, or not there. */
    replaceUntilBoot: (path: string, text: string) =>
      withPath('write', path, () => replaceFile(fs, path, text, PRIVATE, true)),

    /**
     * A file for somebody else, in any directory: it has its name when it is whole, and nobody else may read it.
     * @param mayReplace what has the name by then; else that is an EEXIST
     */
    create: (path: string, mayReplace: boolean) => withPath('write', path, () => createNewFile(fs, path, mayReplace)),

    /** One rename(2) of a directory with all that is in it, durable. ENOTEMPTY where anything is in `to`. */
    moveDirectory: (from: string, to: string) =>
      withPath(`rename ${from} to`, to, () => {
        sync(from)
        renamePath(fs, from, to)
        sync(dirname(to))
      }),

    remove: (path: string) =>
      withPath('remove', path, () =>
        removeNames(fs, dirname(path), [basename(path), formatTemporaryName(basename(path))]),
      ),

    /** With its parents, which other calls may remove at the same time as long as they are empty. */
    makeDirectory: (path: string) =>
      withPath('make', path, () => retryWhileRemoved(() => makeDirectories(fs, path, OWN_DIRECTORY))),

    /** Removes the directory and its parents up to `top` (not included) as long as they are empty. */
    removeEmpty(path: string, top: string): void {
      for (let here = path; here.startsWith(`${top}/`); here = dirname(here)) {
        try {
          callByHandle(fs, here, (at) => fs.rmdirSync(at))
        } catch (error) {
          if (errorCode(error) !== 'ENOENT') return
        }
      }
    },

    /** The content of a file that is there; neither atomic nor durable. */
    write: (path: string, bytes: Uint8Array) =>
      withPath('write', path, () => {
        using file = openToWrite(fs, path, O_WRONLY | O_CREAT | O_TRUNC, PRIVATE)
        fs.writeFileSync(file.fd, bytes)
      }),

    /** To the end of a file, which is made where there is none; others may do so at the same time. Not durable. */
    append: (path: string, text: string) =>
      withPath('write', path, () => {
        using file = openToWrite(fs, path, O_WRONLY | O_CREAT | O_APPEND, PRIVATE)
        fs.writeFileSync(file.fd, text)
      }),

    /** Of a file, in bytes; 0 where it cannot be seen. */
    size: (path: string): number => tolerateSystemErrors(() => fs.statSync(path).size) ?? 0,

    /** The bytes of the whole file system that a path lies on; undefined where that does not tell, or nothing is there. */
    capacity: (path: string) =>
      withPath('look at', path, () => {
        const stat = tolerateErrno(MISSING_CODES, () => fs.statfsSync(path))
        return stat && (stat.blocks * stat.bsize || undefined)
      }),

    /** Nothing where there is no directory. */
    list: (path: string) => withPath('list', path, () => tolerateErrno(MISSING_CODES, () => listNames(fs, path))) ?? [],
  }
}

function readOwnFile(fs: Fs, path: string): string {
  if (fs.statSync(path).isDirectory()) throw new SystemError('read', 'EISDIR', path)
  const { text, stat } = readBounded(fs, path, MAX_OWN_BYTES)
  if (!isOwnersFile(stat)) throw new SystemError('read', 'EPERM', path, 'it belongs to another user than root')
  return text
}
