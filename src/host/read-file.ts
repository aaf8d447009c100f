import type { Stats } from 'node:fs'
import { SystemError } from './system-error.ts'

// As a namespace it would be copied, name by name.
export const nodeFs = process.getBuiltinModule('node:fs')

/** node:fs, or memfs. */
export type Fs = typeof nodeFs

/** An open file: `using file = opened(...)`. What close(2) answers does not matter after reads or fsync(2). */
export function opened(fs: Fs, path: string, flags: string | number = 'r', mode?: number): Disposable & { fd: number } {
  const fd = fs.openSync(path, flags, mode)
  return {
    fd,
    [Symbol.dispose]() {
      try {
        fs.closeSync(fd)
      } catch {
        // Linux has closed it all the same.
      }
    },
  }
}

/** fsync(2): its names are on disk. */
export function syncDirectory(fs: Fs, path: string): void {
  using directory = opened(fs, path)
  fs.fsyncSync(directory.fd)
}

/** A file as text. Given a path, readFileSync itself would end the process, without an answer, where close(2) fails. */
export function readText(path: string, fs: Fs = nodeFs): string {
  using file = opened(fs, path)
  return fs.readFileSync(file.fd, 'utf8')
}

const BLOCK = 1 << 16

/**
 * Opens a regular file at a path that somebody else may have chosen, without waiting for anything.
 * @throws {SystemError} EINVAL for anything else: a FIFO or a device could block, never end, or start something
 */
export function openedRegular(fs: Fs, path: string): Disposable & { fd: number; stat: Stats } {
  requireRegular(path, fs.statSync(path))
  const file = opened(fs, path, nodeFs.constants.O_RDONLY | nodeFs.constants.O_NONBLOCK)
  try {
    // What was looked at could be exchanged before it was opened.
    const stat = fs.fstatSync(file.fd)
    requireRegular(path, stat)
    return { ...file, stat }
  } catch (error) {
    file[Symbol.dispose]()
    throw error
  }
}

/** The first bytes of a regular file, at most `length`. Throws as `openedRegular`. */
export function readHead(fs: Fs, path: string, length: number): Buffer {
  using file = openedRegular(fs, path)
  return headOf(fs, file.fd, length)
}

/** What follows in an open file, at most `length` bytes. */
export function headOf(fs: Fs, fd: number, length: number): Buffer {
  const blocks: Buffer[] = []
  for (let left = length; left > 0; left -= blocks.at(-1)?.length ?? 0) {
    const block = Buffer.alloc(Math.min(left, BLOCK))
    const count = fs.readSync(fd, block)
    if (count === 0) break
    blocks.push(block.subarray(0, count))
  }
  return Buffer.concat(blocks)
}

function requireRegular(path: string, stat: Stats): void {
  if (!stat.isFile()) throw new SystemError('read', 'EINVAL', path, 'no regular file')
}
