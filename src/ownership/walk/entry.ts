import type { DirentIterator } from '../../kernel/dirents.ts'
import { type EntryName, getErrno, type Handle, type Inodes, type StatBatch, type StatView } from '../../kernel/host.ts'

/** A directory's entry for itself. */
export const SELF_ENTRY_NAME = Uint8Array.of(0x2e)

const SLASH_BYTE = 0x2f
// Limits the path in each record and report, because paths of a deep tree can be long.
const MAX_RECORDED_PATH_BYTES = 1024
const ELLIPSIS_BYTES = Buffer.from('…')

/** Returns an entry's path below the volume's root as bytes, for messages only. Only the end of a long path is kept. */
export function joinEntryPath(directory: Uint8Array, name: Uint8Array): Uint8Array {
  const path = Buffer.allocUnsafe(directory.length + 1 + name.length)
  return shortenPath(path.subarray(0, writeEntryPath(path, 0, directory, name)))
}

/** Returns an upper bound of the length that `writeEntryPath` needs; undefined: the path would have to be shortened. */
export function measureEntryPath(directory: Uint8Array, name: Uint8Array): number | undefined {
  const length = directory.length + 1 + name.length
  return length <= MAX_RECORDED_PATH_BYTES ? length : undefined
}

/** Writes the full path at an offset. @returns its length */
export function writeEntryPath(bytes: Uint8Array, at: number, directory: Uint8Array, name: Uint8Array): number {
  const start = directory.length === 0 || name.length === 0 ? directory.length : directory.length + 1
  // Short enough for loops to be faster than calls.
  for (let index = 0; index < directory.length; index++) bytes[at + index] = directory[index] as number
  if (start > directory.length) bytes[at + directory.length] = SLASH_BYTE
  for (let index = 0; index < name.length; index++) bytes[at + start + index] = name[index] as number
  return start + name.length
}

function shortenPath(path: Buffer): Uint8Array {
  if (path.length <= MAX_RECORDED_PATH_BYTES) return path
  const end = path.subarray(path.length - MAX_RECORDED_PATH_BYTES)
  return Buffer.concat([ELLIPSIS_BYTES, end.subarray(end.indexOf(SLASH_BYTE))])
}

const VANISHED_ENTRY_ERRNOS = new Set(['ENOENT', 'ENOTDIR', 'ELOOP'])

/** Returns undefined if the name was removed or became something else meanwhile (a link: ELOOP). */
export function ignoreVanishedEntry<T>(operation: () => T): T | undefined {
  try {
    return operation()
  } catch (error) {
    if (VANISHED_ENTRY_ERRNOS.has(getErrno(error) ?? '')) return undefined
    throw error
  }
}

const LOW_WORD_MASK = 0xffffffffn
// Differs in each process, so that users who choose the names cannot choose their slots.
const NAME_HASH_SEED = [0, 0].map(() => Math.floor(Math.random() * 2 ** 32)) as [number, number]

/**
 * Returns a number from 1 to 2^53 that identifies a name within a volume, in this process.
 * Two names may, very rarely, have the same number: an inode then seems to have one name fewer, and is skipped.
 */
export function hashEntryName(directory: { inode: bigint; born: bigint }, entry: Uint8Array): number {
  let [a, b] = NAME_HASH_SEED
  const mix = (word: number) => {
    // FNV-1a, with two primes.
    a = Math.imul(a ^ word, 0x01000193)
    b = Math.imul(b ^ word, 0x85ebca6b) ^ (b >>> 13)
  }
  for (const number of [directory.inode, directory.born]) {
    mix(Number(number & LOW_WORD_MASK))
    mix(Number((number >> 32n) & LOW_WORD_MASK))
  }
  for (const byte of entry) mix(byte)
  // The last bytes have changed few bits so far.
  mix(a >>> 16)
  mix(b >>> 15)
  return (a >>> 0) * 2 ** 21 + (b >>> 11) + 1
}

// Longer names are inspected one by one.
const MAX_ENTRY_NAME_BYTES = 255

/** Entries of a block that are inspected together; none is known to be a directory. */
export class DirectoryEntryRun implements Disposable {
  count = 0
  /** Whether the entries are opened, too. */
  opensEntries = false
  /** Time before the first of them was inspected. */
  startedAtMs = 0
  readonly #inodes: Inodes
  readonly #batch: StatBatch
  readonly #positions: Int32Array
  #isFinished = true
  /** Handles from this index on are not taken yet. */
  #nextHandle = 0

  /** @param most maximum number of entries */
  constructor(inodes: Inodes, batch: StatBatch, most: number) {
    this.#inodes = inodes
    this.#batch = batch
    this.#positions = new Int32Array(Math.min(batch.size, most))
  }

  /**
   * Starts to inspect the next entries of the block, and stops before one that may be a directory.
   * @param isAhead the entries are inspected while others are dealt with
   */
  start(directory: Handle, block: DirentIterator, opensEntries: boolean, isAhead: boolean): void {
    this.count = 0
    while (this.count < this.#positions.length && block.next()) {
      const { nameLength } = block
      if (!block.isFile || nameLength > MAX_ENTRY_NAME_BYTES) {
        block.back()
        break
      }
      this.#batch.setName(this.count, block.bytes, block.nameStart, nameLength)
      this.#positions[this.count++] = block.place
    }
    this.opensEntries = opensEntries
    this.startedAtMs = Date.now()
    this.#nextHandle = 0
    if (this.count === 0) return
    this.#isFinished = false
    if (opensEntries) this.#batch.hold(directory, this.count, isAhead)
    else this.#batch.look(directory, this.count, isAhead)
  }

  /** Waits until all entries are inspected. */
  finish(): void {
    if (this.#isFinished) return
    this.#batch.finish()
    this.#isFinished = true
  }

  getPosition(index: number): number {
    return this.#positions[index] as number
  }

  getName(index: number): EntryName {
    return this.#batch.nameOf(index)
  }

  /** Returns undefined if the entry must be inspected by itself. */
  stat(index: number): StatView | undefined {
    return this.#batch.stat(index)
  }

  /** Hands the handle over to the caller. Call it for each entry in turn. */
  takeHandle(index: number): Handle | undefined {
    this.#nextHandle = index + 1
    return this.#batch.handle(index)
  }

  attributeNames(index: number): string | undefined {
    return this.#batch.attributeNames(index)
  }

  /** Closes the handles that were not taken. */
  [Symbol.dispose](): void {
    this.finish()
    for (; this.opensEntries && this.#nextHandle < this.count; this.#nextHandle++) {
      const handle = this.#batch.handle(this.#nextHandle)
      if (handle !== undefined) this.#inodes.close(handle)
    }
  }
}
