import { createHash } from 'node:crypto'
import type * as NodeFs from 'node:fs'
import { dirname } from 'node:path'
import { unlessRefused, withPath } from './file-error.ts'
import { errorCode } from './host.ts'
import { readHead } from './regular-file.ts'
import { trustedFiles } from './trusted-files.ts'

/** As stat(2) tells it, what an installer asks for. */
export type FileStat = Pick<NodeFs.Stats, 'dev' | 'ino' | 'mode' | 'uid' | 'gid'>

export type NodeFiles = ReturnType<typeof nodeFiles>

/**
 * What an installer does to files below directories that only root can write. Paths are absolute. Every method that does not
 * say otherwise throws a FileError that names the path.
 * @param fs node:fs, or memfs
 */
export function nodeFiles(fs: typeof NodeFs) {
  const { list, read, readForeign, replace } = trustedFiles(fs)
  return {
    list,
    read,
    readForeign,
    replace,
    /** Of what a path leads to, or of a link itself; undefined where there is nothing. */
    stat: (path: string, isLink?: 'of a link itself'): FileStat | undefined =>
      unlessRefused(() => (isLink ? fs.lstatSync(path) : fs.statSync(path))),
    /** Where a link leads; undefined where none is there. */
    target: (path: string) => unlessRefused(() => fs.readlinkSync(path, 'utf8')),
    realPath: (path: string) => withPath('find', path, () => fs.realpathSync(path)),
    canWrite: (path: string) => unlessRefused(() => fs.accessSync(path, fs.constants.W_OK) ?? true) ?? false,
    /** With its parents, 0755. Nothing where it is there already. */
    makeDirectory: (path: string, mode: number) => withPath('make', path, () => makeDirectory(fs, path, mode)),
    /**
     * A new file, durable after `sync`; EEXIST where the name is taken. Its owner's alone until `secure`, whatever the mode of
     * what is copied.
     */
    copy: (from: string, to: string) => withPath(`copy ${from} to`, to, () => copyBytes(fs, from, to)),
    /** Gives it to root, with this mode, whatever the directory or the umask gave. */
    secure: (path: string, mode: number) =>
      withPath('set owner and mode of', path, () => {
        fs.chownSync(path, 0, 0)
        fs.chmodSync(path, mode)
      }),
    chmod: (path: string, mode: number) => withPath('set the mode of', path, () => fs.chmodSync(path, mode)),
    /** fsync(2) of a file or a directory. */
    sync: (path: string) => withPath('sync', path, () => withFile(fs, path, (fd) => fs.fsyncSync(fd))),
    /** One rename(2). */
    rename: (from: string, to: string) => withPath(`rename ${from} to`, to, () => fs.renameSync(from, to)),
    link: (target: string, path: string) => withPath('link', path, () => fs.symlinkSync(target, path)),
    /** A file or a link, if it is there. */
    remove: (path: string) => withPath('remove', path, () => fs.rmSync(path, { force: true })),
    /** False where it is not empty, or cannot be removed. */
    removeEmpty: (path: string) => unlessRefused(() => fs.rmdirSync(path) ?? true) ?? false,
    /** All of it, links themselves. */
    removeTree: (path: string) => withPath('remove', path, () => fs.rmSync(path, { recursive: true, force: true })),
    /** Whether two files have the same bytes. */
    isSame: (one: string, other: string) => withPath(`compare ${one} with`, other, () => hasSameBytes(fs, one, other)),
    /** SHA-256, in hexadecimal digits. */
    sum: (path: string) => withPath('read', path, () => withFile(fs, path, (fd) => sumOf(fs, fd))),
    /** The first bytes of a regular file, at most so many; undefined where it cannot be read. */
    head: (path: string, length: number) => unlessRefused(() => readHead(fs, path, length)),
  }
}

const BLOCK = 1 << 20

function sumOf(fs: typeof NodeFs, fd: number): string {
  const hash = createHash('sha256')
  const block = Buffer.alloc(BLOCK)
  for (let length = fs.readSync(fd, block); length > 0; length = fs.readSync(fd, block)) {
    hash.update(block.subarray(0, length))
  }
  return hash.digest('hex')
}

/** Not copyFile, which gives the mode first: who could write to the copy, or run it set-uid, would do so before it is compared. */
function copyBytes(fs: typeof NodeFs, from: string, to: string): void {
  withFile(fs, from, (source) => {
    const copy = fs.openSync(to, 'wx', 0o600)
    try {
      const block = Buffer.alloc(Math.min(16 * BLOCK, fs.fstatSync(source).size + 1))
      for (let length = fs.readSync(source, block); length > 0; length = fs.readSync(source, block)) {
        for (let at = 0; at < length; ) at += fs.writeSync(copy, block, at, length - at)
      }
    } finally {
      fs.closeSync(copy)
    }
  })
}

function hasSameBytes(fs: typeof NodeFs, one: string, other: string): boolean {
  const [a, b] = [fs.statSync(one), fs.statSync(other)]
  if (a.dev === b.dev && a.ino === b.ino) return true
  if (a.size !== b.size) return false
  return withFile(fs, one, (left) =>
    withFile(fs, other, (right) => {
      const [ours, theirs] = [Buffer.alloc(BLOCK), Buffer.alloc(BLOCK)]
      for (;;) {
        const length = fs.readSync(left, ours)
        if (fs.readSync(right, theirs) !== length || ours.compare(theirs, 0, length, 0, length) !== 0) return false
        if (length === 0) return true
      }
    }),
  )
}

function withFile<T>(fs: typeof NodeFs, path: string, use: (fd: number) => T): T {
  const fd = fs.openSync(path, 'r')
  try {
    return use(fd)
  } finally {
    fs.closeSync(fd)
  }
}

function makeDirectory(fs: typeof NodeFs, path: string, mode: number): void {
  if (!fs.existsSync(dirname(path))) makeDirectory(fs, dirname(path), 0o755)
  try {
    fs.mkdirSync(path, { mode })
  } catch (error) {
    // Another installer may have been first.
    if (errorCode(error) !== 'EEXIST') throw error
  }
}
