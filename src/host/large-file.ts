import { dirname } from 'node:path'
import { withPath } from './file-error.ts'
import { type Fs, opened, openedRegular, syncDirectory } from './read-file.ts'

/** A file that somebody else has written, held open. */
export interface ForeignFile extends Disposable {
  /** When it was opened. */
  size: number
  /** Bytes from a position on; fewer where it ends. */
  read(position: number, length: number): Uint8Array
}

export function foreignFile(fs: Fs, path: string): ForeignFile {
  const file = openedRegular(fs, path)
  return {
    size: file.stat.size,
    read: (position, length) =>
      withPath('read', path, () => {
        const bytes = Buffer.alloc(length)
        for (let at = 0; at < length; ) {
          const count = fs.readSync(file.fd, bytes, at, length - at, position + at)
          if (count === 0) return bytes.subarray(0, at)
          at += count
        }
        return bytes
      }),
    [Symbol.dispose]: () => file[Symbol.dispose](),
  }
}

/** A file that gets its name when all of it is written; without `finish` nothing stays of it. */
export interface NewFile extends Disposable {
  write(bytes: Uint8Array): void
  /** Durable. */
  finish(): void
}

export function newFile(fs: Fs, path: string, mayReplace: boolean): NewFile {
  // Exclusive: no link is followed, in whosever directory, and nobody's file is written to.
  const temporary = `${dirname(path)}/.modekeep-${process.pid}-${Math.random().toString(36).slice(2)}`
  const file = opened(fs, temporary, 'wx', 0o600)
  let isNamed = false
  return {
    write: (bytes) => withPath('write', path, () => fs.writeFileSync(file.fd, bytes)),
    finish: () =>
      withPath('write', path, () => {
        fs.fsyncSync(file.fd)
        if (!mayReplace) opened(fs, path, 'wx', 0o600)[Symbol.dispose]()
        try {
          // Over its own empty file, or what may be replaced: link(2) would do it at once, but not on every file system.
          fs.renameSync(temporary, path)
        } catch (error) {
          if (!mayReplace) fs.rmSync(path, { force: true })
          throw error
        }
        isNamed = true
        syncDirectory(fs, dirname(path))
      }),
    [Symbol.dispose]() {
      file[Symbol.dispose]()
      try {
        if (!isNamed) fs.rmSync(temporary, { force: true })
      } catch {
        // Why it was not finished is what counts: the rest of it is nothing that anybody reads.
      }
    },
  }
}
