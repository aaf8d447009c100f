import { createHash } from 'node:crypto'
import { basename, dirname } from 'node:path'
import type { Host, Lock } from './host.ts'
import {
  type NodeFsModule,
  nodeFs,
  type OpenedFile,
  openFile,
  openFileToRead,
  readFileHead,
  readOwnedFile,
} from './read-file.ts'
import { addPathToErrors, hasCallSucceeded, tolerateErrno, tolerateSystemErrors } from './system-error.ts'
import { createTrustedFiles, type FileStat } from './trusted-files.ts'
import { retryWhileRemoved } from './waiting.ts'
import {
  callWithHandlePath,
  createFileInDirectory,
  makeDirectories,
  openParentDirectory,
  removeNamesInDirectory,
  renamePath,
} from './write-file.ts'

const { O_NOFOLLOW, O_NONBLOCK, O_RDONLY } = nodeFs.constants

export type NodeFiles = ReturnType<typeof createNodeFiles>

/**
 * File operations of the installer, below directories that only root can write. Paths are absolute. A failing method
 * throws a FileError with the path, unless documented otherwise.
 * @param fs node:fs, or memfs
 */
export function createNodeFiles(fs: NodeFsModule) {
  const { list, read, readForeign, replace } = createTrustedFiles(fs)
  return {
    list,
    read,
    readForeign,
    /** Reads a configuration. @throws {Refusal} as `readOwnedFile` */
    readOwned: (path: string) => readOwnedFile(path, fs),
    replace,
    /** Stats a path's target, or the link itself. Returns undefined on any errno. */
    stat: (path: string, isLink?: 'of a link itself'): FileStat | undefined =>
      tolerateSystemErrors(() => (isLink ? fs.lstatSync(path) : fs.statSync(path))),
    hasDirectory: (path: string) => tolerateSystemErrors(() => fs.statSync(path).isDirectory()) ?? false,
    /** Returns the target of a link, or undefined if the path has no link. */
    target: (path: string) => tolerateSystemErrors(() => fs.readlinkSync(path, 'utf8')),
    realPath: (path: string) => addPathToErrors('find', path, () => fs.realpathSync(path)),
    canWrite: (path: string) => hasCallSucceeded(() => fs.accessSync(path, fs.constants.W_OK)),
    /** Creates the directory if it is missing, and its parents with mode 0755. */
    makeDirectory: (path: string, mode: number) =>
      addPathToErrors('make', path, () => retryWhileRemoved(() => makeDirectories(fs, path, mode, 0o755))),
    /** Opens a regular file. Reads stay on that file, even if its path is exchanged. */
    open: (path: string) => addPathToErrors('read', path, () => openSourceFile(fs, path)),
    /** Creates a file for its owner alone until `secure`, durable after `sync`. EEXIST if the name exists. */
    create: (path: string, bytes: Uint8Array) => addPathToErrors('write', path, () => createFile(fs, path, [bytes])),
    /** Sets root as owner and this mode, which the directory or the umask may have changed. */
    secure: (path: string, mode: number) =>
      addPathToErrors('set owner and mode of', path, () => {
        using file = openFileOrDirectory(fs, path)
        fs.fchownSync(file.fd, 0, 0)
        fs.fchmodSync(file.fd, mode)
      }),
    chmod: (path: string, mode: number) =>
      addPathToErrors('set the mode of', path, () => {
        using file = openFileOrDirectory(fs, path)
        fs.fchmodSync(file.fd, mode)
      }),
    /** Calls fsync(2) on a file or a directory. */
    sync: (path: string) => addPathToErrors('sync', path, () => syncFile(fs, path)),
    /** Makes one rename(2). */
    rename: (from: string, to: string) => addPathToErrors(`rename ${from} to`, to, () => renamePath(fs, from, to)),
    link: (target: string, path: string) =>
      addPathToErrors('link', path, () => callWithHandlePath(fs, path, (at) => fs.symlinkSync(target, at))),
    /** Removes a file or a link if it exists. */
    remove: (path: string) =>
      addPathToErrors('remove', path, () => removeNamesInDirectory(fs, dirname(path), [basename(path)])),
    /** Returns false if the directory is not empty or cannot be removed. */
    removeEmpty: (path: string) => hasCallSucceeded(() => callWithHandlePath(fs, path, (at) => fs.rmdirSync(at))),
    /** Removes a tree. Links are removed, not followed. */
    removeTree: (path: string) =>
      addPathToErrors('remove', path, () =>
        tolerateErrno('ENOENT', () =>
          callWithHandlePath(fs, path, (at) => fs.rmSync(at, { recursive: true, force: true })),
        ),
      ),
    /** Compares the content of two files. */
    isSame: (one: string, other: string) =>
      addPathToErrors(`compare ${one} with`, other, () => hasSameBytes(fs, one, other)),
    /** Returns the SHA-256 in hexadecimal digits. */
    sum: (path: string) => addPathToErrors('read', path, () => hashFile(fs, path)),
    /** Reads at most `length` bytes from the start of a regular file. Returns undefined if it cannot be read. */
    head: (path: string, length: number) => tolerateSystemErrors(() => readFileHead(fs, path, length)),
  }
}

const MAX_BLOCK_BYTES = 1 << 24

export type SourceFile = ReturnType<typeof openSourceFile>

function openSourceFile(fs: NodeFsModule, path: string) {
  const file = openFileToRead(fs, path)
  return {
    /** Returns the SHA-256 in hexadecimal digits. */
    sum: () => addPathToErrors('read', path, () => hashBlocks(readFileBlocks(fs, file.fd))),
    /** Copies the content to a new file, as `create`. @returns the SHA-256 of the written bytes */
    copyTo: (to: string) =>
      addPathToErrors(`copy ${path} to`, to, () => createFile(fs, to, readFileBlocks(fs, file.fd))),
    [Symbol.dispose]: () => file[Symbol.dispose](),
  }
}

function hashBlocks(bytes: Iterable<Uint8Array>): string {
  const hash = createHash('sha256')
  for (const block of bytes) hash.update(block)
  return hash.digest('hex')
}

/** copyFile sets the mode first: other users could write to the copy, or run it set-uid, before it is compared. */
function createFile(fs: NodeFsModule, path: string, bytes: Iterable<Uint8Array>): string {
  const hash = createHash('sha256')
  using parent = openParentDirectory(fs, dirname(path))
  using file = createFileInDirectory(fs, parent, basename(path), 0o600)
  for (const block of bytes) {
    hash.update(block)
    fs.writeFileSync(file.fd, block)
  }
  return hash.digest('hex')
}

/** Reads from the start on each call. All blocks share one buffer. */
function* readFileBlocks(fs: NodeFsModule, fd: number): Generator<Buffer> {
  const block = Buffer.alloc(Math.min(MAX_BLOCK_BYTES, fs.fstatSync(fd).size + 1))
  for (let at = 0; ; ) {
    const length = fs.readSync(fd, block, 0, block.length, at)
    if (length === 0) return
    yield block.subarray(0, length)
    at += length
  }
}

function hashFile(fs: NodeFsModule, path: string): string {
  using file = openFileToRead(fs, path)
  return hashBlocks(readFileBlocks(fs, file.fd))
}

function hasSameBytes(fs: NodeFsModule, one: string, other: string): boolean {
  const [a, b] = [fs.statSync(one), fs.statSync(other)]
  if (a.dev === b.dev && a.ino === b.ino) return true
  return a.size === b.size && hashFile(fs, one) === hashFile(fs, other)
}

function syncFile(fs: NodeFsModule, path: string): void {
  using file = openFile(fs, path)
  fs.fsyncSync(file.fd)
}

/** Opens a file or a directory, and rejects a link. */
function openFileOrDirectory(fs: NodeFsModule, path: string): OpenedFile {
  return callWithHandlePath(fs, path, (at) => openFile(fs, at, O_RDONLY | O_NOFOLLOW | O_NONBLOCK))
}

/** The operations on a node that only `install` and `uninstall` use. */
export interface NodeAdministration {
  files: NodeFiles
  host: Host
  /** Takes flock(2) on the directory itself: no lock file is left. Undefined if another process holds the lock. */
  tryLockDirectory(path: string): Lock | undefined
  /** Never rejects: if the program cannot run, the result contains the reason. */
  tryDriver(trial: DriverTrial): Promise<DriverResult>
}

/** One call of a driver, as kubelet makes it. */
export interface DriverTrial {
  command: readonly [string, ...string[]]
  /** The complete environment of the driver. */
  environment: Readonly<Record<string, string>>
  seconds: number
  /** Ends the call before its time limit. */
  stop: AbortSignal
}

export interface DriverResult {
  /** Both output streams, merged as kubelet reads them. */
  text: string
  /** Follows the shell: 128 plus the signal's number, or 126 or 127 if the program could not be started. */
  status: number
  isLate: boolean
}
