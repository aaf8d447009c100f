import { NEWLINE_BYTE, type NodeFsModule, openFileToRead } from '../kernel/read-file.ts'
import { tolerateErrno } from '../kernel/system-error.ts'
import { listLogFiles } from './log-file.ts'

/**
 * The position up to which a file of the log was read, for a later read, also by a later process. The file is identified by
 * its first bytes, which hold a time in milliseconds and a process id: rotation renames it, and inode numbers are reused.
 */
export interface LogReadPosition {
  /** The first bytes of the file, one character for each byte. */
  head: string
  /** The number of bytes up to the end of the last line that was read. */
  offset: number
}

/** The positions in all files that were not empty, the youngest file first. */
export type LogCursor = readonly LogReadPosition[]

const LOG_HEAD_BYTES = 128
const LOG_BLOCK_BYTES = 1 << 20
export type LogReader = ReturnType<typeof createLogReader>

/**
 * Reads a log that is rotated meanwhile (log-file.ts): each line once, the oldest first, as long as its file exists. That
 * includes lines that a call with the file open writes after the file was renamed.
 *
 * If the file that was read last was deleted or truncated, lines may be missing, and the lines in the other files may have
 * been read under another head. A reader that counts continues at the end ('skip'); one that shows reads all files ('show').
 * @param cursor the cursor of an earlier reader; [] begins with the first line
 */
export function createLogReader(fs: NodeFsModule, file: string, afterGap: 'show' | 'skip', cursor: LogCursor = []) {
  const isTruncated = (fd: number, { offset }: LogReadPosition) => fs.fstatSync(fd).size < offset
  /** Finds the position with the longest head that matches, because a head may be of an incomplete first line. Undefined for a new file. */
  const findPosition = (fd: number): LogReadPosition | undefined => {
    const fitting = reader.cursor.filter(({ head }) => readFirstBytes(fs, fd, head.length) === head)
    return fitting.sort((one, other) => other.head.length - one.head.length)[0]
  }
  const reader = {
    /** The end of the lines that were returned. It is valid only after `lines` has ended. */
    cursor,
    /** The number of reads before which lines may have been lost. */
    gaps: 0,

    /** Returns all lines, and at each further call the new ones. A read that is interrupted is repeated by the next call. */
    *lines(): Generator<string> {
      using opened = openLogFiles(fs, file)
      const positions = opened.files.map(findPosition)
      const [last] = reader.cursor
      const isGap =
        last !== undefined && !opened.files.some((fd, at) => positions[at] === last && !isTruncated(fd, last))
      if (isGap) reader.gaps++
      const ends: number[] = []
      for (const [at, fd] of [...opened.files.entries()].reverse()) {
        const position = positions[at]
        const isSkipped = position ? isTruncated(fd, position) : isGap && afterGap === 'skip'
        ends[at] = isSkipped ? findLastLineEnd(fs, fd) : yield* readLogLines(fs, fd, position?.offset ?? 0, at > 0)
      }
      reader.cursor = createLogCursor(fs, opened.files, ends)
    },
  }
  return reader
}

/** Returns the cursor at the end of the last line. */
export function findLogEnd(fs: NodeFsModule, file: string): LogCursor {
  using opened = openLogFiles(fs, file)
  const ends = opened.files.map((fd) => findLastLineEnd(fs, fd))
  return createLogCursor(fs, opened.files, ends)
}

function createLogCursor(fs: NodeFsModule, files: readonly number[], ends: readonly number[]): LogCursor {
  const all = files.map((fd, index) => ({ head: readFirstBytes(fs, fd, LOG_HEAD_BYTES), offset: ends[index] ?? 0 }))
  return all.filter(({ head }) => head !== '')
}

// A rotation is three renames, and a file takes longer to fill.
const MAX_LOG_OPEN_ATTEMPTS = 10

/** Opens all files of the log, the youngest first, in a consistent state. */
function openLogFiles(fs: NodeFsModule, file: string): Disposable & { files: readonly number[] } {
  const inodeNow = () => fs.statSync(file, { throwIfNoEntry: false })?.ino
  for (let tries = 1; ; tries++) {
    const before = inodeNow()
    const files = listLogFiles(file).flatMap((name) => openLogFile(fs, name) ?? [])
    const close = () => {
      for (const fd of files) fs.closeSync(fd)
    }
    const inodes = new Set(files.map((fd) => fs.fstatSync(fd).ino))
    // Meanwhile a rotation may have renamed a file, which is then opened twice, or created a new one.
    const isOneMoment = inodes.size === files.length && inodeNow() === before
    if (isOneMoment || tries === MAX_LOG_OPEN_ATTEMPTS) return { files, [Symbol.dispose]: close }
    close()
  }
}

/** Returns undefined for a file that is not regular, or behind a link of a user other than root: it does not belong to the log. */
function openLogFile(fs: NodeFsModule, path: string): number | undefined {
  return tolerateErrno('ENOENT EINVAL ELOOP', () => openFileToRead(fs, path))?.fd
}

function readFirstBytes(fs: NodeFsModule, fd: number, length: number): string {
  return readBytesAt(fs, fd, 0, length).toString('latin1')
}

function readBytesAt(fs: NodeFsModule, fd: number, position: number, length: number): Buffer {
  const buffer = Buffer.alloc(Math.min(length, Math.max(0, fs.fstatSync(fd).size - position)))
  return buffer.subarray(0, fs.readSync(fd, buffer, 0, buffer.length, position))
}

/** Finds the end of the last complete line in the last block; the end of the file if that block has no newline. */
function findLastLineEnd(fs: NodeFsModule, fd: number): number {
  const { size } = fs.fstatSync(fd)
  const start = Math.max(0, size - LOG_BLOCK_BYTES)
  const lineEnd = readBytesAt(fs, fd, start, size - start).lastIndexOf(NEWLINE_BYTE)
  return lineEnd < 0 ? size : start + lineEnd + 1
}

/**
 * @param isClosed whether the file was rotated, so that no process completes a line without a newline
 * @returns the end of the last line that was returned; an incomplete line may follow
 */
function* readLogLines(fs: NodeFsModule, fd: number, offset: number, isClosed: boolean): Generator<string, number> {
  let end = offset
  let rest = Buffer.alloc(0)
  for (;;) {
    const block = readBytesAt(fs, fd, end + rest.length, LOG_BLOCK_BYTES)
    if (block.length === 0) break
    const bytes = Buffer.concat([rest, block])
    const whole = bytes.lastIndexOf(NEWLINE_BYTE) + 1
    yield* bytes.toString('utf8', 0, whole).split('\n').filter(Boolean)
    rest = bytes.subarray(whole)
    end += whole
  }
  if (!isClosed || rest.length === 0) return end
  yield rest.toString()
  return end + rest.length
}
