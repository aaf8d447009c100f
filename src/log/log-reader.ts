import { type Fs, openToRead } from '../host/read-file.ts'
import { unless } from '../host/system-error.ts'
import { generations } from './log-file.ts'

/**
 * How far a file of the log was read, for a later look or a later process. A file is known by its first bytes: rotation
 * gives it another name, and inode numbers come again. Its first line has a time in milliseconds and a process id.
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

export type LogReader = ReturnType<typeof logReader>

/**
 * Reads a log that is rotated while it is read (log-file.ts): each line once, the oldest first, as long as its file is
 * there. That holds for a late line too: a call that had the file open writes it after the file has lost its name.
 *
 * Where the file that was read last is gone, or has become shorter, lines may be missing and what else is there may
 * have been told under another head: who counts goes on at the end, who shows is shown what is there now.
 * @param cursor of an earlier reader; [] for the first line that is there
 */
export function logReader(fs: Fs, file: string, afterGap: 'show' | 'skip', cursor: Cursor = []) {
  const isCut = (fd: number, { offset }: Place) => fs.fstatSync(fd).size < offset
  /** Undefined for a new file. The longest head that fits: one may have been read when its first line was not whole. */
  const placeOf = (fd: number): Place | undefined => {
    const fitting = reader.cursor.filter(({ head }) => readHead(fs, fd, head.length) === head)
    return fitting.sort((one, other) => other.head.length - one.head.length)[0]
  }
  const reader = {
    /** Where the lines end that were told; to be read between two looks. */
    cursor,
    /** How often lines may have been lost. */
    gaps: 0,

    /** All lines; called again, those that came since. A look that is broken off is begun anew next time. */
    *lines(): Generator<string> {
      using opened = openAll(fs, file)
      const places = opened.files.map(placeOf)
      const [last] = reader.cursor
      const isGap = last !== undefined && !opened.files.some((fd, at) => places[at] === last && !isCut(fd, last))
      if (isGap) reader.gaps++
      const ends: number[] = []
      for (const [at, fd] of [...opened.files.entries()].reverse()) {
        const place = places[at]
        const isPassed = place ? isCut(fd, place) : isGap && afterGap === 'skip'
        ends[at] = isPassed ? endOf(fs, fd) : yield* read(fs, fd, place?.offset ?? 0, at > 0)
      }
      reader.cursor = cursorOf(fs, opened.files, ends)
    },
  }
  return reader
}

/** Behind the last line there is now. */
export function endOfLog(fs: Fs, file: string): Cursor {
  using opened = openAll(fs, file)
  const ends = opened.files.map((fd) => endOf(fs, fd))
  return cursorOf(fs, opened.files, ends)
}

function cursorOf(fs: Fs, files: readonly number[], ends: readonly number[]): Cursor {
  const all = files.map((fd, index) => ({ head: readHead(fs, fd, HEAD), offset: ends[index] ?? 0 }))
  return all.filter(({ head }) => head !== '')
}

// A rotation is three renames, and a file takes longer to fill.
const MOST_TRIES = 10

/** All generations, the youngest first, as they were at one moment. */
function openAll(fs: Fs, file: string): Disposable & { files: readonly number[] } {
  const inodeNow = () => fs.statSync(file, { throwIfNoEntry: false })?.ino
  for (let tries = 1; ; tries++) {
    const before = inodeNow()
    const files = generations(file).flatMap((name) => open(fs, name) ?? [])
    const close = () => {
      for (const fd of files) fs.closeSync(fd)
    }
    const inodes = new Set(files.map((fd) => fs.fstatSync(fd).ino))
    // In between, a file may have moved on and been opened twice, or a new one may have come to the front.
    const isOneMoment = inodes.size === files.length && inodeNow() === before
    if (isOneMoment || tries === MOST_TRIES) return { files, [Symbol.dispose]: close }
    close()
  }
}

/** What is not a regular file, or behind a link of others than root, is no file of the log. */
function open(fs: Fs, path: string): number | undefined {
  return unless('ENOENT EINVAL ELOOP', () => openToRead(fs, path))?.fd
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
  for (;;) {
    const block = readAt(fs, fd, end + rest.length, BLOCK)
    if (block.length === 0) break
    const bytes = Buffer.concat([rest, block])
    const whole = bytes.lastIndexOf(NEWLINE) + 1
    yield* bytes.toString('utf8', 0, whole).split('\n').filter(Boolean)
    rest = bytes.subarray(whole)
    end += whole
  }
  if (!isClosed || rest.length === 0) return end
  yield rest.toString()
  return end + rest.length
}
