import { basename, dirname } from 'node:path'
import { withPath } from './file-error.ts'
import { isOwnersFile } from './path-handle.ts'
import { type Fs, openToRead } from './read-file.ts'
import { createFileIn, openParent, removeIn, renameIn } from './write-file.ts'

const OTHERS_WRITE = 0o022

/** A file that somebody else has written, held open. */
export interface ForeignFile extends Disposable {
  /** When it was opened. */
  size: number
  /** Others than root, and the user that modekeep runs as, can write it, or could once. */
  isOthers?: boolean
  /** Bytes from a position on; fewer where it ends. */
  read(position: number, length: number): Uint8Array
}

export function openForeignFile(fs: Fs, path: string): ForeignFile {
  const file = openToRead(fs, path)
  return {
    size: file.stat.size,
    isOthers: !isOwnersFile(file.stat) || (file.stat.mode & OTHERS_WRITE) !== 0,
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

export function createNewFile(fs: Fs, path: string, mayReplace: boolean): NewFile {
  using scope = new DisposableStack()
  const parent = scope.use(openParent(fs, dirname(path)))
  const name = basename(path)
  const temporary = `.modekeep-${process.pid}-${Math.random().toString(36).slice(2)}`
  const file = scope.use(createFileIn(fs, parent, temporary, 0o600))
  const held = scope.move()
  let isNamed = false
  return {
    write: (bytes) => withPath('write', path, () => fs.writeFileSync(file.fd, bytes)),
    finish: () =>
      withPath('write', path, () => {
        fs.fsyncSync(file.fd)
        if (!mayReplace) createFileIn(fs, parent, name, 0o600)[Symbol.dispose]()
        try {
          // Over its own empty file, or what may be replaced: link(2) would do it at once, but not on every file system.
          renameIn(fs, parent, temporary, name)
        } catch (error) {
          if (!mayReplace) removeIn(fs, parent, name)
          throw error
        }
        isNamed = true
        parent.sync()
      }),
    [Symbol.dispose]() {
      using _ = held
      try {
        if (!isNamed) removeIn(fs, parent, temporary)
      } catch {
        // Why it was not finished is what counts: the rest of it is nothing that anybody reads.
      }
    },
  }
}
