import { createHash } from 'node:crypto'
import { basename, dirname } from 'node:path'
import { succeeds, tolerateSystemErrors, withPath } from './file-error.ts'
import { makeDirectories } from './make-directory.ts'
import { readOwned } from './owned-file.ts'
import { type Fs, nodeFs, type OpenedFile, openFile, openToRead, readHead } from './read-file.ts'
import { retryWhileRemoved } from './retry-while-removed.ts'
import { tolerateErrno } from './system-error.ts'
import { createTrustedFiles, type FileStat } from './trusted-files.ts'
import { callByHandle, createFileIn, openParent, removeNames, renamePath } from './write-file.ts'

const { O_NOFOLLOW, O_NONBLOCK, O_RDONLY } = nodeFs.constants

export type NodeFiles = ReturnType<typeof createNodeFiles>

/**
 * What an installer does to files below directories that only root can write. Paths are absolute. Every method that
 * does not say otherwise throws a FileError that names the path.
 * @param fs node:fs, or memfs
 */
export function createNodeFiles(fs: Fs) {
  const { list, read, readForeign, replace } = createTrustedFiles(fs)
  return {
    list,
    read,
    readForeign,
    /** A configuration. @throws {Refusal} as `readOwned` */
    readOwned: (path: string) => readOwned(path, fs),
    replace,
    /** Of what a path leads to, or of a link itself; undefined where there is nothing. */
    stat: (path: string, isLink?: 'of a link itself'): FileStat | undefined =>
      tolerateSystemErrors(() => (isLink ? fs.lstatSync(path) : fs.statSync(path))),
    hasDirectory: (path: string) => tolerateSystemErrors(() => fs.statSync(path).isDirectory()) ?? false,
    /** Where a link leads; undefined where none is there. */
    target: (path: string) => tolerateSystemErrors(() => fs.readlinkSync(path, 'utf8')),
    realPath: (path: string) => withPath('find', path, () => fs.realpathSync(path)),
    canWrite: (path: string) => succeeds(() => fs.accessSync(path, fs.constants.W_OK)),
    /** With its parents, 0755. Nothing where it is there already. */
    makeDirectory: (path: string, mode: number) =>
      withPath('make', path, () => retryWhileRemoved(() => makeDirectories(fs, path, mode, 0o755))),
    /** A regular file that stays the one that was opened, whoever exchanges what its path leads to. */
    open: (path: string) => withPath('read', path, () => openSourceFile(fs, path)),
    /** A new file, durable after `sync`; EEXIST where the name is taken. Its owner's alone until `secure`. */
    create: (path: string, bytes: Uint8Array) => withPath('write', path, () => createFile(fs, path, [bytes])),
    /** Gives it to root, with this mode, whatever the directory or the umask gave. */
    secure: (path: string, mode: number) =>
      withPath('set owner and mode of', path, () => {
        using file = openItself(fs, path)
        fs.fchownSync(file.fd, 0, 0)
        fs.fchmodSync(file.fd, mode)
      }),
    chmod: (path: string, mode: number) =>
      withPath('set the mode of', path, () => {
        using file = openItself(fs, path)
        fs.fchmodSync(file.fd, mode)
      }),
    /** fsync(2) of a file or a directory. */
    sync: (path: string) => withPath('sync', path, () => syncFile(fs, path)),
    /** One rename(2). */
    rename: (from: string, to: string) => withPath(`rename ${from} to`, to, () => renamePath(fs, from, to)),
    link: (target: string, path: string) =>
      withPath('link', path, () => callByHandle(fs, path, (at) => fs.symlinkSync(target, at))),
    /** A file or a link, if it is there. */
    remove: (path: string) => withPath('remove', path, () => removeNames(fs, dirname(path), [basename(path)])),
    /** False where it is not empty, or cannot be removed. */
    removeEmpty: (path: string) => succeeds(() => callByHandle(fs, path, (at) => fs.rmdirSync(at))),
    /** All of it, links themselves. */
    removeTree: (path: string) =>
      withPath('remove', path, () =>
        tolerateErrno('ENOENT', () => callByHandle(fs, path, (at) => fs.rmSync(at, { recursive: true, force: true }))),
      ),
    /** Whether two files have the same bytes. */
    isSame: (one: string, other: string) => withPath(`compare ${one} with`, other, () => hasSameBytes(fs, one, other)),
    /** SHA-256, in hexadecimal digits. */
    sum: (path: string) => withPath('read', path, () => hashFile(fs, path)),
    /** The first bytes of a regular file, at most so many; undefined where it cannot be read. */
    head: (path: string, length: number) => tolerateSystemErrors(() => readHead(fs, path, length)),
  }
}

const LARGEST_BLOCK = 1 << 24

export type SourceFile = ReturnType<typeof openSourceFile>

function openSourceFile(fs: Fs, path: string) {
  const file = openToRead(fs, path)
  return {
    /** SHA-256, in hexadecimal digits. */
    sum: () => withPath('read', path, () => hashBlocks(readBlocks(fs, file.fd))),
    /** Makes a new file of it, as `create`. @returns the SHA-256 of the bytes that were written */
    copyTo: (to: string) => withPath(`copy ${path} to`, to, () => createFile(fs, to, readBlocks(fs, file.fd))),
    [Symbol.dispose]: () => file[Symbol.dispose](),
  }
}

function hashBlocks(bytes: Iterable<Uint8Array>): string {
  const hash = createHash('sha256')
  for (const block of bytes) hash.update(block)
  return hash.digest('hex')
}

/** Not copyFile, which gives the mode first: others could write to the copy, or run it set-uid, uncompared. */
function createFile(fs: Fs, path: string, bytes: Iterable<Uint8Array>): string {
  const hash = createHash('sha256')
  using parent = openParent(fs, dirname(path))
  using file = createFileIn(fs, parent, basename(path), 0o600)
  for (const block of bytes) {
    hash.update(block)
    fs.writeFileSync(file.fd, block)
  }
  return hash.digest('hex')
}

/** From its beginning, however often it was read before. A block is the next one's memory. */
function* readBlocks(fs: Fs, fd: number): Generator<Buffer> {
  const block = Buffer.alloc(Math.min(LARGEST_BLOCK, fs.fstatSync(fd).size + 1))
  for (let at = 0; ; ) {
    const length = fs.readSync(fd, block, 0, block.length, at)
    if (length === 0) return
    yield block.subarray(0, length)
    at += length
  }
}

function hashFile(fs: Fs, path: string): string {
  using file = openToRead(fs, path)
  return hashBlocks(readBlocks(fs, file.fd))
}

function hasSameBytes(fs: Fs, one: string, other: string): boolean {
  const [a, b] = [fs.statSync(one), fs.statSync(other)]
  if (a.dev === b.dev && a.ino === b.ino) return true
  return a.size === b.size && hashFile(fs, one) === hashFile(fs, other)
}

function syncFile(fs: Fs, path: string): void {
  using file = openFile(fs, path)
  fs.fsyncSync(file.fd)
}

/** A file or a directory, and no link. */
function openItself(fs: Fs, path: string): OpenedFile {
  return callByHandle(fs, path, (at) => openFile(fs, at, O_RDONLY | O_NOFOLLOW | O_NONBLOCK))
}
