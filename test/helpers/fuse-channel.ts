import { spawnSync } from 'node:child_process'
import * as fs from 'node:fs'

/** Bytes in front of each request's own data (include/uapi/linux/fuse.h, struct fuse_in_header). */
export const FUSE_HEADER_BYTES = 40

/** The requests and answers of a FUSE file system that the calling process serves. */
export class FuseChannel {
  /** The last request that was received. */
  readonly request: Buffer
  readonly #device: number

  /**
   * Mounts the file system.
   * @param name the source in the mount table
   * @param maxRequestBytes must hold a header and the longest write
   */
  constructor(name: string, directory: string, maxRequestBytes: number) {
    this.request = Buffer.alloc(maxRequestBytes)
    this.#device = fs.openSync('/dev/fuse', 'r+')
    // mount(2) looks for the descriptor in the process that calls it.
    const options = 'fd=3,rootmode=40000,user_id=0,group_id=0,allow_other'
    const { status, stderr } = spawnSync('mount', ['-i', '-t', 'fuse', '-o', options, name, directory], {
      stdio: ['ignore', 'ignore', 'pipe', this.#device],
    })
    if (status !== 0) throw new Error(String(stderr))
  }

  /** Waits for the next request. @returns false after the unmount */
  receive(): boolean {
    for (;;) {
      try {
        fs.readSync(this.#device, this.request)
        return true
      } catch (error) {
        const { code } = error as NodeJS.ErrnoException
        if (code === 'ENODEV') return false
        if (code !== 'EINTR') throw error
      }
    }
  }

  /** @param reply the answer's data, or an errno */
  answer(unique: bigint, reply: Buffer | number): void {
    const body = typeof reply === 'number' ? Buffer.alloc(0) : reply
    const header = Buffer.alloc(16)
    header.writeUInt32LE(16 + body.length, 0)
    header.writeInt32LE(typeof reply === 'number' ? -reply : 0, 4)
    header.writeBigUInt64LE(unique, 8)
    try {
      fs.writeSync(this.#device, Buffer.concat([header, body]))
    } catch (error) {
      // No request waits for it.
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    }
  }
}

/** Returns data of `length` bytes that begins with these words of 32 bits. */
export function encodeWords(length: number, values: readonly number[]): Buffer {
  const words = Buffer.alloc(length)
  for (const [index, value] of values.entries()) words.writeUInt32LE(value, index * 4)
  return words
}
