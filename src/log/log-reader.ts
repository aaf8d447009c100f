import type * as NodeFs from 'node:fs'
import { generations } from './log-file.ts'

type Fs = Pick<typeof NodeFs, 'closeSync' | 'fstatSync' | 'openSync' | 'readSync' | 'statSync'>

const BLOCK = 1 << 16
const NEWLINE = 0x0a

interface Source {
  fd: number
  inode: number
  position: number
  /** Read, and not ended by a newline yet. */
  rest: Buffer
}

/** Reads a log that is rotated while it is read (log-file.ts): no line twice, and none left out but what is removed. */
export class LogReader {
  readonly #fs: Fs
  readonly #file: string
  #current: Source | undefined
  /** Has lost the name: a call that had it open may still write its line. */
  #previous: Source | undefined

  constructor(fs: Fs, file: string) {
    this.#fs = fs
    this.#file = file
  }

  /** All lines there are, the oldest first; called again, those that came since. */
  *lines(): Generator<string> {
    if (this.#previous) yield* this.#end(this.#previous)
    this.#previous = undefined
    if (this.#current) yield* this.#read(this.#current)
    if (this.#current && this.#inodeOf(this.#file) === this.#current.inode) return
    const newer = this.#newer(this.#current?.inode)
    if (newer.length === 0) return
    this.#previous = this.#current
    const last = newer.pop()
    for (const source of newer) yield* this.#end(source)
    this.#current = last
    if (last) yield* this.#read(last)
  }

  close(): void {
    for (const source of [this.#current, this.#previous]) if (source) this.#fs.closeSync(source.fd)
    this.#current = this.#previous = undefined
  }

  /** Opened from the newest on: what is renamed meanwhile is met again under its next name, and known by its inode. */
  #newer(known: number | undefined): Source[] {
    const found: Source[] = []
    for (const path of generations(this.#file)) {
      const source = this.#open(path)
      if (source === undefined) continue
      if (source.inode !== known && !found.some(({ inode }) => inode === source.inode)) {
        found.push(source)
        continue
      }
      this.#fs.closeSync(source.fd)
      if (source.inode === known) break
    }
    return found.reverse()
  }

  #open(path: string): Source | undefined {
    try {
      const fd = this.#fs.openSync(path, 'r')
      return { fd, inode: this.#fs.fstatSync(fd).ino, position: 0, rest: Buffer.alloc(0) }
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
      throw error
    }
  }

  #inodeOf(path: string): number | undefined {
    return this.#fs.statSync(path, { throwIfNoEntry: false })?.ino
  }

  *#end(source: Source): Generator<string> {
    yield* this.#read(source)
    if (source.rest.length > 0) yield source.rest.toString()
    this.#fs.closeSync(source.fd)
  }

  *#read(source: Source): Generator<string> {
    // Somebody has emptied it.
    if (this.#fs.fstatSync(source.fd).size < source.position) {
      source.position = 0
      source.rest = Buffer.alloc(0)
    }
    const block = Buffer.alloc(BLOCK)
    for (;;) {
      const size = this.#fs.readSync(source.fd, block, 0, BLOCK, source.position)
      if (size === 0) return
      source.position += size
      let bytes = Buffer.concat([source.rest, block.subarray(0, size)])
      for (let end = bytes.indexOf(NEWLINE); end >= 0; end = bytes.indexOf(NEWLINE)) {
        yield bytes.subarray(0, end).toString()
        bytes = bytes.subarray(end + 1)
      }
      source.rest = bytes
    }
  }
}
