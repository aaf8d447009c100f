import type * as NodeFs from 'node:fs'
import { basename, dirname } from 'node:path'
import { type KnownTexts, readOwnFile } from './own-file.ts'
import { isOwnedByRootOrSelf } from './path-handle.ts'
import { type NodeFsModule, nodeFs, openFileToRead, readBoundedFile } from './read-file.ts'
import { addPathToErrors, getErrno, tolerateErrno, tolerateSystemErrors } from './system-error.ts'
import { retryWhileRemoved } from './waiting.ts'
import {
  callWithHandlePath,
  createFileInDirectory,
  formatTemporaryName,
  listDirectoryNames,
  makeDirectories,
  openFileToWrite,
  openParentDirectory,
  PRIVATE_FILE_MODE,
  removeInDirectory,
  removeNamesInDirectory,
  renameInDirectory,
  renamePath,
  replaceFile,
} from './write-file.ts'

const OWN_DIRECTORY_MODE = 0o700
const MAX_FOREIGN_FILE_BYTES = 1 << 20
const { O_APPEND, O_CREAT, O_TRUNC, O_WRONLY } = nodeFs.constants

/** ENOTDIR: a parent in the path is a file, so nothing exists below it. */
const MISSING_PATH_ERRNOS = 'ENOENT ENOTDIR'
const NO_THROW_STAT_OPTIONS = { throwIfNoEntry: false } as const

/** The fields of stat(2) that callers use. */
export type FileStat = Pick<NodeFs.Stats, 'dev' | 'ino' | 'mode' | 'uid' | 'gid'>

export type TrustedFiles = ReturnType<typeof createTrustedFiles>

/**
 * modekeep's own files, below directories that only root can write. Paths are absolute. Each method except
 * `removeEmpty` throws a FileError with the path.
 */
export function createTrustedFiles(fs: NodeFsModule) {
  const sync = (directory: string) => {
    using parent = openParentDirectory(fs, directory)
    parent.sync()
  }
  const known: KnownTexts = new Map()
  return {
    /** Returns undefined if the file does not exist. @throws {FileError} EPERM for a file of a user other than root */
    read: (path: string) =>
      addPathToErrors('read', path, () => tolerateErrno(MISSING_PATH_ERRNOS, () => readOwnFile(fs, path, known))),

    /** Checks whether the path exists. For a missing file this is much cheaper than `read`. */
    has: (path: string) =>
      addPathToErrors(
        'look at',
        path,
        () => tolerateErrno(MISSING_PATH_ERRNOS, () => fs.statSync(path, NO_THROW_STAT_OPTIONS)) !== undefined,
      ),

    /** Reads a file at a path from outside, by the rules of `openFileToRead`. The default limit is 1 MiB. */
    readForeign: (path: string, maxBytes = MAX_FOREIGN_FILE_BYTES) =>
      addPathToErrors('read', path, () =>
        tolerateErrno(MISSING_PATH_ERRNOS, () => readBoundedFile(fs, path, maxBytes).text),
      ),

    /** Opens a foreign file of any size. All reads are from the opened file. */
    openForeign: (path: string) => addPathToErrors('read', path, () => openForeignFile(fs, path)),

    /** Stats the target of a path. Returns undefined on any errno. */
    stat: (path: string): FileStat | undefined => tolerateSystemErrors(() => fs.statSync(path)),

    /**
     * Returns the birth time of the path's target in milliseconds since 1970, or ctime if the file system stores none.
     * Returns undefined on any errno.
     */
    born: (path: string): number | undefined =>
      tolerateSystemErrors(() => {
        const { birthtimeMs, ctimeMs } = fs.statSync(path)
        return birthtimeMs > 0 ? birthtimeMs : ctimeMs
      }),

    /**
     * Replaces a file atomically and durably: temporary file, fsync, rename, fsync of the directory. The path's name
     * and the temporary one are never followed as links, in a directory of any owner. Only one process at a time may
     * replace a path, because a leftover `PATH.new` is removed.
     */
    replace: (path: string, text: string, mode = PRIVATE_FILE_MODE) =>
      addPathToErrors('write', path, () => replaceFile(fs, path, text, mode)),

    /** Like `replace`, but after a crash of the node the file may be empty or missing. */
    replaceUntilBoot: (path: string, text: string) =>
      addPathToErrors('write', path, () => replaceFile(fs, path, text, PRIVATE_FILE_MODE, 'none')),

    /** Like `replace`, but a crash of the node may leave the former file, or none, until the directory is synced. */
    replaceUntilDirectorySync: (path: string, content: string | Uint8Array) =>
      addPathToErrors('write', path, () => replaceFile(fs, path, content, PRIVATE_FILE_MODE, 'content')),

    /**
     * Creates a file for a user, in any directory. It gets its name when it is complete, and only its owner can read
     * it.
     * @param mayReplace replaces an existing file; otherwise that fails with EEXIST
     */
    create: (path: string, mayReplace: boolean) =>
      addPathToErrors('write', path, () => createNewFile(fs, path, mayReplace)),

    /** Makes a durable rename(2) of a directory with its content. ENOTEMPTY if `to` is not empty. */
    moveDirectory: (from: string, to: string) =>
      addPathToErrors(`rename ${from} to`, to, () => {
        sync(from)
        renamePath(fs, from, to)
        sync(dirname(to))
      }),

    remove: (path: string) =>
      addPathToErrors('remove', path, () =>
        removeNamesInDirectory(fs, dirname(path), [basename(path), formatTemporaryName(basename(path))]),
      ),

    /** Creates the directory and its parents. Other calls may concurrently remove them while they are empty. */
    makeDirectory: (path: string) =>
      addPathToErrors('make', path, () => retryWhileRemoved(() => makeDirectories(fs, path, OWN_DIRECTORY_MODE))),

    /** Removes the directory and its parents up to `top` (not included) as long as they are empty. */
    removeEmpty(path: string, top: string): void {
      for (let directory = path; directory.startsWith(`${top}/`); directory = dirname(directory)) {
        try {
          callWithHandlePath(fs, directory, (at) => fs.rmdirSync(at))
        } catch (error) {
          if (getErrno(error) !== 'ENOENT') return
        }
      }
    },

    /** Overwrites a file, neither atomically nor durably. */
    write: (path: string, bytes: Uint8Array) =>
      addPathToErrors('write', path, () => {
        using file = openFileToWrite(fs, path, O_WRONLY | O_CREAT | O_TRUNC, PRIVATE_FILE_MODE)
        fs.writeFileSync(file.fd, bytes)
      }),

    /** Appends to a file and creates it if needed. Other processes may append concurrently. Not durable. */
    append: (path: string, text: string) =>
      addPathToErrors('write', path, () => {
        using file = openFileToWrite(fs, path, O_WRONLY | O_CREAT | O_APPEND, PRIVATE_FILE_MODE)
        fs.writeFileSync(file.fd, text)
      }),

    /** Returns the size in bytes, or 0 on any errno. */
    size: (path: string): number => tolerateSystemErrors(() => fs.statSync(path).size) ?? 0,

    /** Returns the total bytes of the path's file system. Undefined if it reports none, or the path does not exist. */
    capacity: (path: string) =>
      addPathToErrors('look at', path, () => {
        const stat = tolerateErrno(MISSING_PATH_ERRNOS, () => fs.statfsSync(path))
        return stat && (stat.blocks * stat.bsize || undefined)
      }),

    /** Returns an empty list if the directory does not exist. */
    list: (path: string) =>
      addPathToErrors('list', path, () => tolerateErrno(MISSING_PATH_ERRNOS, () => listDirectoryNames(fs, path))) ?? [],
  }
}

const GROUP_OR_OTHERS_WRITE_BITS = 0o022

/** An open file that another program has written. */
export interface ForeignFile extends Disposable {
  /** Size when it was opened. */
  size: number
  /** True if a user other than root and modekeep's own can write the file, or could when it was opened. */
  isOthers?: boolean
  /** Reads from a position. Returns fewer bytes at the end of the file. */
  read(position: number, length: number): Uint8Array
}

function openForeignFile(fs: NodeFsModule, path: string): ForeignFile {
  const file = openFileToRead(fs, path)
  return {
    size: file.stat.size,
    isOthers: !isOwnedByRootOrSelf(file.stat) || (file.stat.mode & GROUP_OR_OTHERS_WRITE_BITS) !== 0,
    read: (position, length) =>
      addPathToErrors('read', path, () => {
        const bytes = Buffer.alloc(length)
        for (let filled = 0; filled < length; ) {
          const count = fs.readSync(file.fd, bytes, filled, length - filled, position + filled)
          if (count === 0) return bytes.subarray(0, filled)
          filled += count
        }
        return bytes
      }),
    [Symbol.dispose]: () => file[Symbol.dispose](),
  }
}

/** A file that gets its name when its content is complete. Without `finish` it is removed. */
export interface NewFile extends Disposable {
  write(bytes: Uint8Array): void
  /** Makes the file durable. */
  finish(): void
}

function createNewFile(fs: NodeFsModule, path: string, mayReplace: boolean): NewFile {
  using scope = new DisposableStack()
  const parent = scope.use(openParentDirectory(fs, dirname(path)))
  const name = basename(path)
  const temporary = `.modekeep-${process.pid}-${Math.random().toString(36).slice(2)}`
  const file = scope.use(createFileInDirectory(fs, parent, temporary, 0o600))
  const resources = scope.move()
  let isNamed = false
  return {
    write: (bytes) => addPathToErrors('write', path, () => fs.writeFileSync(file.fd, bytes)),
    finish: () =>
      addPathToErrors('write', path, () => {
        fs.fsyncSync(file.fd)
        if (!mayReplace) createFileInDirectory(fs, parent, name, 0o600)[Symbol.dispose]()
        try {
          // Replaces the file's own empty placeholder, or an existing file. link(2) would need no placeholder, but some
          // file systems lack it.
          renameInDirectory(fs, parent, temporary, name)
        } catch (error) {
          if (!mayReplace) removeInDirectory(fs, parent, name)
          throw error
        }
        isNamed = true
        parent.sync()
      }),
    [Symbol.dispose]() {
      using _ = resources
      try {
        if (!isNamed) removeInDirectory(fs, parent, temporary)
      } catch {
        // The earlier error is the one to report. The remaining temporary file is never read.
      }
    },
  }
}
