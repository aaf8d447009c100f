import type { Name } from './host.ts'

// struct linux_dirent64 (getdents64(2)): u64 ino, s64 off, u16 length, u8 type, the name and its NUL.
const OFF = 8
const LENGTH = 16
const TYPE_OFFSET = 18
const NAME = 19
const DOT = 0x2e

/** d_type: a hint. */
export const TYPE_DIRECTORY = 4
/** The file system does not say. */
const TYPE_UNKNOWN = 0

/** Reads a block of directory entries, one after the other. */
export class Dirents {
  readonly bytes: Uint8Array
  readonly #end: number
  #next = 0
  #entry = 0

  constructor(bytes: Uint8Array) {
    this.bytes = bytes
    this.#end = bytes.length
  }

  /** Goes to the next entry that is not "." or ".."; false at the block's end. */
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

  /** As a hint: other than the inode's own number where something is mounted, and on some file systems. */
  get inode(): bigint {
    return new DataView(this.bytes.buffer, this.bytes.byteOffset + this.#entry).getBigUint64(0, true)
  }

  get type(): number {
    return this.bytes[this.#entry + TYPE_OFFSET] ?? 0
  }

  /** No directory, as far as the type tells. */
  get isFile(): boolean {
    return this.type !== TYPE_DIRECTORY && this.type !== TYPE_UNKNOWN
  }

  /** Where the present entry lies. */
  get place(): number {
    return this.#entry
  }

  /** Goes to an entry again, as to the present one. */
  goTo(place: number): void {
    this.#entry = place
    this.#next = place + this.#lengthAt(place)
  }

  /** The present entry comes once more. */
  back(): void {
    this.#next = this.#entry
  }

  /** A view into the block. */
  get name(): Name {
    return this.bytes.subarray(this.nameStart, this.nameStart + this.nameLength)
  }

  /** Where in the block it begins. */
  get nameStart(): number {
    return this.#entry + NAME
  }

  get nameLength(): number {
    const start = this.nameStart
    // The length is rounded up to 8: the NUL is among the last 8 bytes, whatever comes after it.
    let end = Math.max(start, this.#next - 8)
    while (this.bytes[end] !== 0) end++
    return end - start
  }

  /** Where to go on after the present entry, on this or another handle of the directory; undefined before the first. */
  get after(): bigint | undefined {
    return this.#next === 0 ? undefined : this.#offAt(this.#entry)
  }

  /** Where to go on after the block. */
  get end(): bigint {
    let last = 0
    for (let at = 0; at < this.bytes.length; at += this.#lengthAt(at)) last = at
    return this.#offAt(last)
  }

  /** How many entries come after the present one, "." and ".." included. */
  get rest(): number {
    let count = 0
    for (let at = this.#next; at < this.#end; at += this.#lengthAt(at)) count++
    return count
  }

  #lengthAt(entry: number): number {
    const length = (this.bytes[entry + LENGTH] ?? 0) | ((this.bytes[entry + LENGTH + 1] ?? 0) << 8)
    if (length === 0) throw new Error('a block of directory entries is damaged')
    return length
  }

  #offAt(entry: number): bigint {
    return new DataView(this.bytes.buffer, this.bytes.byteOffset + entry).getBigInt64(OFF, true)
  }

  #isDots(): boolean {
    const first = this.#entry + NAME
    if (this.bytes[first] !== DOT) return false
    return this.bytes[first + 1] === 0 || (this.bytes[first + 1] === DOT && this.bytes[first + 2] === 0)
  }
}
