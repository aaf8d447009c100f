import type { Stats } from 'node:fs'
import { createFault, type Fault } from '../errors/fault.ts'
import { Refusal } from '../errors/refusal.ts'
import { closeQuietly, hasPathHandles, type NodeFsModule, nodeFs, openPathHandle } from './path-handle.ts'
import { getErrno, SystemError } from './system-error.ts'

export { type NodeFsModule, nodeFs }

export const NEWLINE_BYTE = 0x0a

/** An open file: `using file = openFile(...)`. */
export interface OpenedFile extends Disposable {
  readonly fd: number
}

export function openFile(fs: NodeFsModule, path: string, flags: string | number = 'r', mode?: number): OpenedFile {
  const fd = fs.openSync(path, flags, mode)
  return { fd, [Symbol.dispose]: () => closeQuietly(fs, fd) }
}

/** Makes the names in the directory durable by fsync(2). */
export function syncDirectory(fs: NodeFsModule, path: string): void {
  using directory = openFile(fs, path)
  fs.fsyncSync(directory.fd)
}

/** If readFileSync opened the path itself, a failing close(2) would end the process without a reply. */
export function readTextFile(path: string, fs: NodeFsModule = nodeFs): string {
  using file = openFile(fs, path)
  return fs.readFileSync(file.fd, 'utf8')
}

const READ_BLOCK_BYTES = 1 << 16

/**
 * Opens a file whose path other users may have chosen; no other function may open such a file for reading. It does not
 * block, opens no device, and follows links as `openPathHandle` documents.
 * @throws {SystemError} EINVAL for anything but a regular file; ELOOP for a link that others could exchange
 */
export function openFileToRead(fs: NodeFsModule, path: string): OpenedFile & { stat: Stats } {
  assertRegularFile(path, fs.statSync(path))
  if (!hasPathHandles(fs)) return addFileStat(fs, path, openFile(fs, path, READ_FLAGS))
  using handle = openPathHandle(fs, path)
  // The file could be exchanged between the first check and the open.
  assertRegularFile(path, fs.fstatSync(handle.fd))
  return addFileStat(fs, path, openFile(fs, handle.link, READ_FLAGS))
}

const READ_FLAGS = nodeFs.constants.O_RDONLY | nodeFs.constants.O_NONBLOCK

function addFileStat(fs: NodeFsModule, path: string, file: OpenedFile): OpenedFile & { stat: Stats } {
  try {
    const stat = fs.fstatSync(file.fd)
    assertRegularFile(path, stat)
    return { ...file, stat }
  } catch (error) {
    file[Symbol.dispose]()
    throw error
  }
}

/**
 * Reads a complete regular file as text.
 * @throws {SystemError} EFBIG if the file has more than `maxBytes` bytes, and as `openFileToRead`
 */
export function readBoundedFile(fs: NodeFsModule, path: string, maxBytes: number): { text: string; stat: Stats } {
  using file = openFileToRead(fs, path)
  const bytes = readBytesUpTo(fs, file.fd, maxBytes + 1)
  if (bytes.length > maxBytes) throw new SystemError('read', 'EFBIG', path)
  return { text: bytes.toString(), stat: file.stat }
}

/** Reads at most `length` bytes from the start of a regular file. Throws as `openFileToRead`. */
export function readFileHead(fs: NodeFsModule, path: string, length: number): Buffer {
  using file = openFileToRead(fs, path)
  return readBytesUpTo(fs, file.fd, length)
}

/** Reads at most `length` bytes from the current position of an open file. */
function readBytesUpTo(fs: NodeFsModule, fd: number, length: number): Buffer {
  const blocks: Buffer[] = []
  for (let remaining = length; remaining > 0; remaining -= blocks.at(-1)?.length ?? 0) {
    const block = Buffer.alloc(Math.min(remaining, READ_BLOCK_BYTES))
    const count = fs.readSync(fd, block)
    if (count === 0) break
    blocks.push(block.subarray(0, count))
  }
  return Buffer.concat(blocks)
}

function assertRegularFile(path: string, stat: Stats): void {
  if (!stat.isFile()) throw new SystemError('read', 'EINVAL', path, 'no regular file')
}

const MAX_OWNED_FILE_BYTES = 1 << 20
const GROUP_OR_OTHERS_WRITE_BITS = 0o022

const ERRNO_REASONS: Readonly<Record<string, string>> = {
  EINVAL: 'is no regular file: write one there',
  ELOOP:
    'is behind a symbolic link that users other than root can exchange: chown root and chmod go-w the directories of its path',
}

/**
 * Reads a file that decides what root mounts and runs. It must be a regular file of at most 1 MiB. It must belong to
 * root or to modekeep's own user, and no other user may write to it. The checks apply to the opened file.
 * @returns undefined if there is no file
 * @throws {Refusal} a message with the path, the owner, the mode and the remedy
 */
export function readOwnedFile(path: string, fs: NodeFsModule = nodeFs): Buffer | undefined {
  try {
    using file = openFileToRead(fs, path)
    const fault = describeOwnerFault(path, file.stat)
    if (fault !== undefined) throw new Refusal(fault)
    const bytes = readBytesUpTo(fs, file.fd, MAX_OWNED_FILE_BYTES + 1)
    if (bytes.length > MAX_OWNED_FILE_BYTES)
      throw Refusal.of('config-owner', `${path} is larger than 1 MiB`, 'write a configuration there')
    return bytes
  } catch (error) {
    const code = getErrno(error)
    if (code === undefined) throw error
    if (code === 'ENOENT') return undefined
    throw new Refusal(createFault('file-access', `${path} ${ERRNO_REASONS[code] ?? `cannot be read (${code})`}`), {
      cause: error,
    })
  }
}

function describeOwnerFault(path: string, { uid, mode }: { uid: number; mode: number }): Fault | undefined {
  const permissions = (mode & 0o7777).toString(8).padStart(4, '0')
  const remedySubject = `${path}, after a look at what is in it`
  if (uid !== 0 && uid !== process.geteuid?.()) {
    return createFault(
      'config-owner',
      `${path} belongs to uid ${uid} (mode ${permissions}), so it is not used`,
      `chown root ${remedySubject}`,
    )
  }
  if ((mode & GROUP_OR_OTHERS_WRITE_BITS) === 0) return undefined
  return createFault(
    'config-owner',
    `${path} can be written by others than its owner (mode ${permissions}, uid ${uid}), so it is not used`,
    `chmod go-w ${remedySubject}`,
  )
}
