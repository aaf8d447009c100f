import type * as NodeFs from 'node:fs'
import { generations } from './log-file.ts'

type Fs = Pick<typeof NodeFs, 'closeSync' | 'fstatSync' | 'openSync' | 'readSync' | 'statSync'>

/**
 * How far the log was read, for a later process. A file is known by its first bytes: rotation gives it another name, and inode numbers are used
 * again. Its first line has the time in milliseconds and a process id.
 */
export interface Cursor {
  /** One character for each byte; '' where there was nothing to read yet. */
  head: string
  /** In bytes, behind the end of a line. */
  offset: number
}

export interface Read {
  cursor: Cursor
  /** The file that was read last is gone or was cut, so that lines are lost. */
  isGap: boolean
}

const HEAD = 128
const CHUNK = 1 << 20

/**
 * Tells the lines that came since, oldest first, each once, through rotations. It begins at the log's end, and again where
 * the file that was read last is gone: what was told already must not be told again.
 * @param file the log's name; those of older generations follow from it
 */
export function readLinesSince(fs: Fs, file: string, since: Cursor | undefined, tell: (line: string) => void): Read {
  const files = openAll(fs, file)
  try {
    const last = since?.head === '' ? files.length : files.findIndex((fd) => since && isFileOf(fs, fd, since))
    if (since === undefined || last < 0) return { cursor: endOf(fs, files), isGap: since !== undefined }
    let { head, offset } = since
    for (const [index, fd] of [...files.entries()].slice(0, last + 1).reverse()) {
      const end = readFrom(fs, fd, index === last ? offset : 0, tell)
      if (fs.fstatSync(fd).size > 0) [head, offset] = [headOf(fs, fd, HEAD), end]
    }
    return { cursor: { head, offset }, isGap: false }
  } finally {
    for (const fd of files) fs.closeSync(fd)
  }
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

function isFileOf(fs: Fs, fd: number, { head, offset }: Cursor): boolean {
  return fs.fstatSync(fd).size >= offset && headOf(fs, fd, head.length) === head
}

function headOf(fs: Fs, fd: number, length: number): string {
  return readAt(fs, fd, 0, length).toString('latin1')
}

function readAt(fs: Fs, fd: number, position: number, length: number): Buffer {
  const buffer = Buffer.alloc(length)
  return buffer.subarray(0, fs.readSync(fd, buffer, 0, length, position))
}

/** Behind the last line of the youngest file that has one. */
function endOf(fs: Fs, files: readonly number[]): Cursor {
  for (const fd of files) {
    const { size } = fs.fstatSync(fd)
    if (size === 0) continue
    const start = Math.max(0, size - CHUNK)
    const lineEnd = readAt(fs, fd, start, size - start).lastIndexOf('\n')
    return { head: headOf(fs, fd, HEAD), offset: lineEnd < 0 ? size : start + lineEnd + 1 }
  }
  return { head: '', offset: 0 }
}

/** @returns where the last whole line ends: another may be on its way */
function readFrom(fs: Fs, fd: number, offset: number, tell: (line: string) => void): number {
  let end = offset
  let rest = Buffer.alloc(0)
  for (let at = offset; ; ) {
    const chunk = readAt(fs, fd, at, CHUNK)
    if (chunk.length === 0) return end
    at += chunk.length
    const bytes = Buffer.concat([rest, chunk])
    const lineEnd = bytes.lastIndexOf('\n') + 1
    rest = bytes.subarray(lineEnd)
    end += lineEnd
    for (const line of bytes.toString('utf8', 0, lineEnd).split('\n')) if (line !== '') tell(line)
  }
}
