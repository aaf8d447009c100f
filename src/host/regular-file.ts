import type * as NodeFs from 'node:fs'
import { constants } from 'node:fs'
import { SystemError } from './system-error.ts'

export type RegularFs = Pick<typeof NodeFs, 'closeSync' | 'fstatSync' | 'openSync' | 'readSync' | 'statSync'>

const BLOCK = 1 << 16

/**
 * The first bytes of a regular file, at most `length`: of a path that somebody else chose, too.
 * @throws {SystemError} EINVAL for anything else: a FIFO or a device would block, never end, or start something when opened
 */
export function readHead(fs: RegularFs, path: string, length: number): Buffer {
  requireRegular(path, fs.statSync(path))
  const fd = fs.openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
  try {
    // What was looked at could be exchanged before it was opened.
    requireRegular(path, fs.fstatSync(fd))
    const blocks: Buffer[] = []
    for (let left = length; left > 0; ) {
      const block = Buffer.alloc(Math.min(left, BLOCK))
      const count = fs.readSync(fd, block)
      if (count === 0) break
      blocks.push(block.subarray(0, count))
      left -= count
    }
    return Buffer.concat(blocks)
  } finally {
    fs.closeSync(fd)
  }
}

/** A regular file as text. @throws {SystemError} EFBIG where it has more than `most` bytes, else as `readHead` */
export function readBounded(fs: RegularFs, path: string, most: number): string {
  const bytes = readHead(fs, path, most + 1)
  if (bytes.length > most) throw new SystemError('read', 'EFBIG', path)
  return bytes.toString()
}

function requireRegular(path: string, stat: NodeFs.Stats): void {
  if (!stat.isFile()) throw new SystemError('read', 'EINVAL', path, 'no regular file')
}
