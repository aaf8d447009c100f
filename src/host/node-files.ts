import { createHash } from 'node:crypto'
import type * as NodeFs from 'node:fs'
import { dirname } from 'node:path'
import { unlessRefused, withPath } from './file-error.ts'
import { errorCode, type TrustedFiles } from './host.ts'
import { trustedFiles } from './trusted-files.ts'

/** As stat(2) tells it, what an installer asks for. */
export type FileStat = Pick<NodeFs.Stats, 'dev' | 'ino' | 'mode' | 'uid' | 'gid'>

/**
 * What an installer does to files below directories that only root can write. Paths are absolute. Owners and modes are
 * those that are named, whatever the directory or the umask would give.
 * @throws {FileError} withPath the path, from every method that does not say what it returns instead
 */
export interface NodeFiles extends Pick<TrustedFiles, 'list' | 'read'> {
  /** Of what a path leads to, or with `isLink` of what lies there; undefined where there is nothing. */
  stat(path: string, isLink?: 'of a link itself'): FileStat | undefined
  /** Where a link leads; undefined where none is there. */
  target(path: string): string | undefined
  realPath(path: string): string
  canWrite(path: string): boolean
  /** With its parents, 0755. Nothing where it is there already. */
  makeDirectory(path: string, mode: number): void
  /** A new file; EEXIST where the name is taken. */
  write(path: string, text: string): void
  /** The same, durable after `sync`. */
  copy(from: string, to: string): void
  /** Gives it to root, with this mode. */
  secure(path: string, mode: number): void
  chmod(path: string, mode: number): void
  /** fsync(2) of a file or a directory. */
  sync(path: string): void
  /** One rename(2). */
  rename(from: string, to: string): void
  link(target: string, path: string): void
  /** A file or a link, if it is there. */
  remove(path: string): void
  /** @returns false where it is not empty, or cannot be removed */
  removeEmpty(path: string): boolean
  /** All of it, links themselves. */
  removeTree(path: string): void
  /** Whether two files have the same bytes. */
  isSame(one: string, other: string): boolean
  /** SHA-256, in hexadecimal digits. */
  sum(path: string): string
  /** The first bytes, at most so many; undefined where it cannot be read. */
  head(path: string, length: number): Buffer | undefined
}

/** `fs` is node:fs or memfs. */
export function nodeFiles(fs: typeof NodeFs): NodeFiles {
  const { list, read } = trustedFiles(fs)
  return {
    list,
    read,
    stat: (path, isLink) => unlessRefused(() => (isLink ? fs.lstatSync(path) : fs.statSync(path))),
    target: (path) => unlessRefused(() => fs.readlinkSync(path, 'utf8')),
    realPath: (path) => withPath('find', path, () => fs.realpathSync(path)),
    canWrite: (path) => unlessRefused(() => fs.accessSync(path, fs.constants.W_OK) ?? true) ?? false,
    makeDirectory: (path, mode) => withPath('make', path, () => makeDirectory(fs, path, mode)),
    write: (path, text) => withPath('write', path, () => fs.writeFileSync(path, text, { flag: 'wx', mode: 0o644 })),
    copy: (from, to) => withPath(`copy ${from} to`, to, () => fs.copyFileSync(from, to, fs.constants.COPYFILE_EXCL)),
    secure: (path, mode) =>
      withPath('set owner and mode of', path, () => {
        fs.chownSync(path, 0, 0)
        fs.chmodSync(path, mode)
      }),
    chmod: (path, mode) => withPath('set the mode of', path, () => fs.chmodSync(path, mode)),
    sync: (path) => withPath('sync', path, () => withFile(fs, path, (fd) => fs.fsyncSync(fd))),
    rename: (from, to) => withPath(`rename ${from} to`, to, () => fs.renameSync(from, to)),
    link: (target, path) => withPath('link', path, () => fs.symlinkSync(target, path)),
    remove: (path) => withPath('remove', path, () => fs.rmSync(path, { force: true })),
    removeEmpty: (path) => unlessRefused(() => fs.rmdirSync(path) ?? true) ?? false,
    removeTree: (path) => withPath('remove', path, () => fs.rmSync(path, { recursive: true, force: true })),
    isSame: (one, other) => withPath(`compare ${one} with`, other, () => hasSameBytes(fs, one, other)),
    sum: (path) => withPath('read', path, () => withFile(fs, path, (fd) => sumOf(fs, fd))),
    head: (path, length) =>
      unlessRefused(() =>
        withFile(fs, path, (fd) => {
          const bytes = Buffer.alloc(length)
          return bytes.subarray(0, fs.readSync(fd, bytes))
        }),
      ),
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
