import type { EntryName } from './host.ts'

// struct linux_dirent64 (getdents64(2)): u64 ino, s64 off, u16 length, u8 type, the name and its NUL.
const DIRENT_POSITION_OFFSET = 8
const DIRENT_LENGTH_OFFSET = 16
const DIRENT_TYPE_OFFSET = 18
const DIRENT_NAME_OFFSET = 19
const DOT_BYTE = 0x2e

/** d_type is only a hint. */
export const DIRENT_TYPE_DIRECTORY = 4
/** The file system does not report types. */
const DIRENT_TYPE_UNKNOWN = 0

/** Iterates over the entries of one block of getdents64(2). */
export class DirentIterator {
  readonly bytes: Uint8Array
  readonly #end: number
  #next = 0
  #entry = 0

  constructor(bytes: Uint8Array) {
    this.bytes = bytes
    this.#end = bytes.length
  }

  /** Advances to the next entry other than "." and "..". Returns false at the end of the block. */
  next(): boolean {
    while (this.#next < this.#end) {
      this.#entry = this.#next
      this.#next += this.#lengthAt(this.#entry)
      if (!this.#isDots()) return true
    }
    return false
  }

  get isAtEnd(): boolean {
    return this.#next >= this.#end
  }

  /** Only a hint: it differs from the inode's own number at mount points and on some file systems. */
  get inode(): bigint {
    return new DataView(this.bytes.buffer, this.bytes.byteOffset + this.#entry).getBigUint64(0, true)
  }

  get type(): number {
    return this.bytes[this.#entry + DIRENT_TYPE_OFFSET] ?? 0
  }

  /** Returns true if the type is known and is not a directory. */
  get isFile(): boolean {
    return this.type !== DIRENT_TYPE_DIRECTORY && this.type !== DIRENT_TYPE_UNKNOWN
  }

  /** Returns the offset of the current entry. */
  get place(): number {
    return this.#entry
  }

  /** Makes the entry at this offset the current one. */
  goTo(place: number): void {
    this.#entry = place
    this.#next = place + this.#lengthAt(place)
  }

  /** Makes `next` return the current entry once more. */
  back(): void {
    this.#next = this.#entry
  }

  /** Returns a view into the block. */
  get name(): EntryName {
    return this.bytes.subarray(this.nameStart, this.nameStart + this.nameLength)
  }

  /** Returns the offset of the name in the block. */
  get nameStart(): number {
    return this.#entry + DIRENT_NAME_OFFSET
  }

  get nameLength(): number {
    const start = this.nameStart
    // The kernel rounds the length up to 8. The NUL is therefore among the last 8 bytes, and padding may follow it.
    let end = Math.max(start, this.#next - 8)
    while (this.bytes[end] !== 0) end++
    return end - start
  }

  /** The seek position after the current entry, on any handle of the directory; undefined before the first entry. */
  get after(): bigint | undefined {
    return this.#next === 0 ? undefined : this.#offAt(this.#entry)
  }

  /** Returns the seek position after the block. */
  get end(): bigint {
    let last = 0
    for (let at = 0; at < this.bytes.length; at += this.#lengthAt(at)) last = at
    return this.#offAt(last)
  }

  /** Counts the entries after the current one, including "." and "..". */
  get rest(): number {
    let count = 0
    for (let at = this.#next; at < this.#end; at += this.#lengthAt(at)) count++
    return count
  }

  #lengthAt(entry: number): number {
    const length =
      (this.bytes[entry + DIRENT_LENGTH_OFFSET] ?? 0) | ((this.bytes[entry + DIRENT_LENGTH_OFFSET + 1] ?? 0) << 8)
    if (length === 0) throw new Error('a block of directory entries is damaged')
    return length
  }

  #offAt(entry: number): bigint {
    return new DataView(this.bytes.buffer, this.bytes.byteOffset + entry).getBigInt64(DIRENT_POSITION_OFFSET, true)
  }

  #isDots(): boolean {
    const first = this.#entry + DIRENT_NAME_OFFSET
    if (this.bytes[first] !== DOT_BYTE) return false
    return this.bytes[first + 1] === 0 || (this.bytes[first + 1] === DOT_BYTE && this.bytes[first + 2] === 0)
  }
}
