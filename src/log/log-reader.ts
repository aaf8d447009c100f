import type * as NodeFs from 'node:fs'
import { generations } from './log-file.ts'

type Fs = Pick<typeof NodeFs, 'closeSync' | 'fstatSync' | 'openSync' | 'readSync' | 'statSync'>

/**
 * How far a file of the log was read, for a later look or a later process. A file is known by its first bytes: rotation
 * gives it another name, and inode numbers are used again. Its first line has the time in milliseconds and a process id.
 */
export interface Place {
  /** One character for each byte. */
  head: string
  /** In bytes, behind the end of a line. */
  offset: number
}

/** Of each file that had something in it, the youngest first. */
export type Cursor = readonly Place[]

const HEAD = 128
const BLOCK = 1 << 20
const NEWLINE = 0x0a

/**
 * Reads a log that is rotated while it is read (log-file.ts): each line once, the oldest first, as long as its file is
 * there. That holds for a late line too: a call that had the file open writes it after the file has lost its name.
 *
 * Where the file that was read last is gone, or has become shorter, lines may be missing and what else is there may have
 * been told under another head: who counts goes on at the end, who shows is shown what is there now.
 */
export class LogReader {
  readonly #fs: Fs
  readonly #file: string
  readonly #afterGap: 'show' | 'skip'
  #cursor: Cursor
  #gaps = 0

  /** @param cursor of an earlier reader; [] for the first line that is there */
  constructor(fs: Fs, file: string, afterGap: 'show' | 'skip', cursor: Cursor = []) {
    this.#fs = fs
    this.#file = file
    this.#afterGap = afterGap
    this.#cursor = cursor
  }

  /** Where the lines end that were told; to be read between two looks. */
  get cursor(): Cursor {
    return this.#cursor
  }

  /** How often lines may have been lost. */
  get gaps(): number {
    return this.#gaps
  }

  /** All lines there are; called again, those that came since. A look that is broken off is begun anew by the next. */
  *lines(): Generator<string> {
    const files = openAll(this.#fs, this.#file)
    try {
      const places = files.map((fd) => this.#placeOf(fd))
      const [last] = this.#cursor
      const isGap = last !== undefined && !files.some((fd, at) => places[at] === last && !isCut(this.#fs, fd, last))
      if (isGap) this.#gaps++
      const ends: number[] = []
      for (const [at, fd] of [...files.entries()].reverse()) {
        const place = places[at]
        const isPassed = place ? isCut(this.#fs, fd, place) : isGap && this.#afterGap === 'skip'
        ends[at] = isPassed ? endOf(this.#fs, fd) : yield* read(this.#fs, fd, place?.offset ?? 0, at > 0)
      }
      this.#cursor = cursorOf(this.#fs, files, ends)
    } finally {
      for (const fd of files) this.#fs.closeSync(fd)
    }
  }

  /** Undefined for a new file. The longest head that fits: one may have been read when its first line was not whole. */
  #placeOf(fd: number): Place | undefined {
    const fitting = this.#cursor.filter(({ head }) => readHead(this.#fs, fd, head.length) === head)
    return fitting.sort((one, other) => other.head.length - one.head.length)[0]
  }
}

/** Behind the last line there is now. */
export function endOfLog(fs: Fs, file: string): Cursor {
  const files = openAll(fs, file)
  try {
    const ends = files.map((fd) => endOf(fs, fd))
    return cursorOf(fs, files, ends)
  } finally {
    for (const fd of files) fs.closeSync(fd)
  }
}

function isCut(fs: Fs, fd: number, { offset }: Place): boolean {
  return fs.fstatSync(fd).size < offset
}

function cursorOf(fs: Fs, files: readonly number[], ends: readonly number[]): Cursor {
  const all = files.map((fd, index) => ({ head: readHead(fs, fd, HEAD), offset: ends[index] ?? 0 }))
  return all.filter(({ head }) => head !== '')
}

// A rotation is three renames, and a file takes longer to fill.
const MOST_TRIES = 10

/** All generations, the youngest first, as they were at one moment. */
function openAll(fs: Fs, file: string): number[] {
  for (let tries = 1; ; tries++) {
    const before = inodeAt(fs, file)
    const opened = generations(file).flatMap((name) => open(fs, name) ?? [])
    const inodes = new Set(opened.map((fd) => fs.fstatSync(fd).ino))
    // In between, a file may have moved on and been opened twice, or a new one may have come to the front.
    if ((inodes.size === opened.length && inodeAt(fs, file) === before) || tries === MOST_TRIES) return opened
    for (const fd of opened) fs.closeSync(fd)
  }
}

function inodeAt(fs: Fs, path: string): number | undefined {
  return fs.statSync(path, { throwIfNoEntry: false })?.ino
}

function open(fs: Fs, path: string): number | undefined {
  try {
    return fs.openSync(path, 'r')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

function readHead(fs: Fs, fd: number, length: number): string {
  return readAt(fs, fd, 0, length).toString('latin1')
}

function readAt(fs: Fs, fd: number, position: number, length: number): Buffer {
  const buffer = Buffer.alloc(Math.min(length, Math.max(0, fs.fstatSync(fd).size - position)))
  return buffer.subarray(0, fs.readSync(fd, buffer, 0, buffer.length, position))
}

/** Behind the last whole line, as far as one block tells. */
function endOf(fs: Fs, fd: number): number {
  const { size } = fs.fstatSync(fd)
  const start = Math.max(0, size - BLOCK)
  const lineEnd = readAt(fs, fd, start, size - start).lastIndexOf(NEWLINE)
  return lineEnd < 0 ? size : start + lineEnd + 1
}

/**
 * @param isClosed the file has lost its name: nobody goes on with a line that has no end
 * @returns where the last line that was told ends: another may be on its way
 */
function* read(fs: Fs, fd: number, offset: number, isClosed: boolean): Generator<string, number> {
  let end = offset
  let rest = Buffer.alloc(0)
  for (let at = offset; ; ) {
    const block = readAt(fs, fd, at, BLOCK)
    if (block.length === 0) break
    at += block.length
    const bytes = Buffer.concat([rest, block])
    let start = 0
    for (let next = bytes.indexOf(NEWLINE); next >= 0; next = bytes.indexOf(NEWLINE, start)) {
      if (next > start) yield bytes.toString('utf8', start, next)
      start = next + 1
    }
    rest = bytes.subarray(start)
    end += start
  }
  if (!isClosed || rest.length === 0) return end
  yield rest.toString()
  return end + rest.length
}
