import { basename, dirname } from 'node:path'
import { withPath } from './file-error.ts'
import { isOwnersFile } from './path-handle.ts'
import { type Fs, openToRead } from './read-file.ts'
import { createFileIn, openParent, removeIn, renameIn } from './write-file.ts'

const OTHERS_WRITE = 0o022

/** An open file that another program has written. */
export interface ForeignFile extends Disposable {
  /** Size when it was opened. */
  size: number
  /** True if a user other than root and modekeep's own can write the file, or could when it was opened. */
  isOthers?: boolean
  /** Reads from a position. Returns fewer bytes at the end of the file. */
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

export function createNewFile(fs: Fs, path: string, mayReplace: boolean): NewFile {
  using scope = new DisposableStack()
  const parent = scope.use(openParent(fs, dirname(path)))
  const name = basename(path)
  const temporary = `.modekeep-${process.pid}-${Math.random().toString(36).slice(2)}`
  const file = scope.use(createFileIn(fs, parent, temporary, 0o600))
  const resources = scope.move()
  let isNamed = false
  return {
    write: (bytes) => withPath('write', path, () => fs.writeFileSync(file.fd, bytes)),
    finish: () =>
      withPath('write', path, () => {
        fs.fsyncSync(file.fd)
        if (!mayReplace) createFileIn(fs, parent, name, 0o600)[Symbol.dispose]()
        try {
          // Replaces the file's own empty placeholder, or an existing file. link(2) would need no placeholder, but some
          // file systems lack it.
          renameIn(fs, parent, temporary, name)
        } catch (error) {
          if (!mayReplace) removeIn(fs, parent, name)
          throw error
        }
        isNamed = true
        parent.sync()
      }),
    [Symbol.dispose]() {
      using _ = resources
      try {
        if (!isNamed) removeIn(fs, parent, temporary)
      } catch {
        // The earlier error is the one to report. The remaining temporary file is never read.
      }
    },
  }
}
