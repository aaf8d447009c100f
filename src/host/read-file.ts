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

/** A file as text. Given a path, readFileSync itself would end the process, without an answer, where close(2) fails. */
export function readText(path: string, fs: Fs = nodeFs): string {
  using file = opened(fs, path)
  return fs.readFileSync(file.fd, 'utf8')
}

const BLOCK = 1 << 16

/**
 * The first bytes of a regular file, at most `length`: of a path that somebody else chose, too.
 * @throws {SystemError} EINVAL for anything else: a FIFO or a device could block, never end, or start something
 */
export function readHead(fs: Fs, path: string, length: number): Buffer {
  requireRegular(path, fs.statSync(path))
  using file = opened(fs, path, nodeFs.constants.O_RDONLY | nodeFs.constants.O_NONBLOCK)
  // What was looked at could be exchanged before it was opened.
  requireRegular(path, fs.fstatSync(file.fd))
  const blocks: Buffer[] = []
  for (let left = length; left > 0; left -= blocks.at(-1)?.length ?? 0) {
    const block = Buffer.alloc(Math.min(left, BLOCK))
    const count = fs.readSync(file.fd, block)
    if (count === 0) break
    blocks.push(block.subarray(0, count))
  }
  return Buffer.concat(blocks)
}

function requireRegular(path: string, stat: Stats): void {
  if (!stat.isFile()) throw new SystemError('read', 'EINVAL', path, 'no regular file')
}
