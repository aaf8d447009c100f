// Of an entry: the low word of the inode, its birth time, the place of its last record counted from 1.
const ROW = 4
const LAST = 3
const FORGOTTEN = 0
// Entries come in chunks: one array would have to be copied to grow, and both be there meanwhile.
const CHUNK_BITS = 14
const CHUNK = 1 << CHUNK_BITS
const MET = 0x8000
const FREE = 0
const SMALLEST = 1024
// Of the slots at most so many are taken: a search ends at a free one.
const FULLEST = 0.8
const SPARE = 1.05
/** A slot has some bits of the hash above the entry's number, so that a search reads no rows but the one it is for. */
const NUMBER_BITS = 24
const NUMBER = (1 << NUMBER_BITS) - 1

/** Some entries. What few file systems and few inodes need is there where one of them does. */
interface Chunk {
  rows: Int32Array
  /** See StateTable; and whether a walk has met the inode. */
  states: Uint16Array
  /** The high words of inodes. Undefined: all are 0. */
  highs: Int32Array | undefined
  /** The places of first records, counted from 1. Undefined: they are the last. */
  firsts: Int32Array | undefined
}

/**
 * Where the records of an inode stand among all that were read: the first, which has what the inode was, and the last.
 * Entries of 18 bytes in the order they came in, mostly that in which they are looked for, and an open-addressed table
 * of their numbers, as a volume may have millions of inodes.
 */
export class RecordIndex {
  /** Numbers of entries, counted from 1, and bits of their hashes where the numbers leave room for them. */
  #table: Int32Array
  /** The entry after the one that was found last: mostly the next that is looked for. */
  #next = 0
  readonly #chunks: Chunk[] = []
  /** With those of forgotten inodes. */
  #count = 0
  /** Inodes with a record. */
  size = 0

  /** @param expected about so many inodes: it grows */
  constructor(expected: number) {
    this.#table = newTable(expected)
  }

  /**
   * @param bytes and `at`: where inode and birth time lie, 16 bytes
   * @param place of a record, counted from 0
   * @returns the number of its entry
   */
  add(bytes: DataView, at: number, place: number): number {
    const entry = this.#entryOf(bytes, at) ?? this.#append(bytes, at)
    const chunk = this.#chunkOf(entry)
    const index = entry % CHUNK
    const last = chunk.rows[index * ROW + LAST] as number
    if (last === FORGOTTEN) {
      this.size++
      if (chunk.firsts) chunk.firsts[index] = place + 1
    } else chunk.firsts ??= Int32Array.from({ length: CHUNK }, (_, at) => chunk.rows[at * ROW + LAST] as number)
    chunk.rows[index * ROW + LAST] = place + 1
    return entry
  }

  #append(bytes: DataView, at: number): number {
    if (this.#count >= this.#table.length * FULLEST) this.#grow()
    const entry = this.#count++
    if (entry % CHUNK === 0) this.#chunks.push(newChunk())
    const chunk = this.#chunkOf(entry)
    const index = entry % CHUNK
    const high = bytes.getInt32(at + 4, true)
    chunk.rows[index * ROW] = bytes.getInt32(at, true)
    chunk.rows[index * ROW + 1] = bytes.getInt32(at + 8, true)
    chunk.rows[index * ROW + 2] = bytes.getInt32(at + 12, true)
    if (high !== 0) chunk.highs ??= new Int32Array(CHUNK)
    if (chunk.highs) chunk.highs[index] = high
    putIn(this.#table, hashAt(bytes, at), entry)
    return entry
  }

  stateIn(entry: number): number {
    return (this.#chunkOf(entry).states[entry % CHUNK] as number) & ~MET
  }

  setState(entry: number, state: number): void {
    this.#chunkOf(entry).states[entry % CHUNK] = state
  }

  /** A walk has met the inode: it is not among the `unmet`. */
  meet(bytes: DataView, at: number): void {
    const entry = this.find(bytes, at)
    if (entry === undefined) return
    const { states } = this.#chunkOf(entry)
    states[entry % CHUNK] = (states[entry % CHUNK] as number) | MET
  }

  /** Inode and birth time in turn of those that have a record and were not met. */
  unmet(): BigInt64Array {
    const words: number[] = []
    for (let entry = 0; entry < this.#count; entry++) {
      const { rows, states, highs } = this.#chunkOf(entry)
      const index = entry % CHUNK
      const row = index * ROW
      if (rows[row + LAST] === FORGOTTEN || ((states[index] as number) & MET) !== 0) continue
      words.push(rows[row] as number, highs?.[index] ?? 0, rows[row + 1] as number, rows[row + 2] as number)
    }
    return new BigInt64Array(Int32Array.from(words).buffer)
  }

  remove(bytes: DataView, at: number): void {
    const entry = this.find(bytes, at)
    if (entry === undefined) return
    this.#chunkOf(entry).rows[(entry % CHUNK) * ROW + LAST] = FORGOTTEN
    this.size--
  }

  /** The entry of an inode that has a record. */
  find(bytes: DataView, at: number): number | undefined {
    const entry = this.#entryOf(bytes, at)
    return entry === undefined || this.lastIn(entry) < 0 ? undefined : entry
  }

  /** The places of the first record and of the last in an entry that was found. */
  firstIn(entry: number): number {
    const { firsts } = this.#chunkOf(entry)
    return firsts === undefined ? this.lastIn(entry) : (firsts[entry % CHUNK] as number) - 1
  }

  lastIn(entry: number): number {
    return (this.#chunkOf(entry).rows[(entry % CHUNK) * ROW + LAST] as number) - 1
  }

  #chunkOf(entry: number): Chunk {
    return this.#chunks[entry >> CHUNK_BITS] as Chunk
  }

  /** Also of a forgotten inode. */
  #entryOf(bytes: DataView, at: number): number | undefined {
    const entry = this.#isOf(this.#next, bytes, at) ? this.#next : this.#search(bytes, at)
    if (entry !== undefined) this.#next = entry + 1
    return entry
  }

  #search(bytes: DataView, at: number): number | undefined {
    const table = this.#table
    const mixed = hashAt(bytes, at)
    const mask = maskOf(table)
    for (let slot = firstSlot(table, mixed); ; slot = nextSlot(table, slot)) {
      const known = table[slot] as number
      if (known === FREE) return undefined
      const entry = (known & mask) - 1
      if (known === taken(mask, mixed, entry) && this.#isOf(entry, bytes, at)) return entry
    }
  }

  #isOf(entry: number, bytes: DataView, at: number): boolean {
    if (entry >= this.#count) return false
    const { rows, highs } = this.#chunkOf(entry)
    const index = entry % CHUNK
    const row = index * ROW
    return (
      rows[row] === bytes.getInt32(at, true) &&
      rows[row + 1] === bytes.getInt32(at + 8, true) &&
      rows[row + 2] === bytes.getInt32(at + 12, true) &&
      (highs === undefined ? 0 : highs[index]) === bytes.getInt32(at + 4, true)
    )
  }

  #grow(): void {
    const table = newTable(this.#count * 1.5)
    for (let entry = 0; entry < this.#count; entry++) {
      const { rows, highs } = this.#chunkOf(entry)
      const index = entry % CHUNK
      const row = index * ROW
      const high = highs === undefined ? 0 : (highs[index] as number)
      putIn(table, hash(rows[row] as number, high, rows[row + 1] as number, rows[row + 2] as number), entry)
    }
    this.#table = table
  }
}

/** Of an entry that is in no slot yet. */
function putIn(table: Int32Array, mixed: number, entry: number): void {
  let slot = firstSlot(table, mixed)
  while (table[slot] !== FREE) slot = nextSlot(table, slot)
  table[slot] = taken(maskOf(table), mixed, entry)
}

/** What of a slot is the entry's number. */
function maskOf({ length }: Int32Array): number {
  return length <= NUMBER ? NUMBER : -1
}

/** What the slot of an entry has: the lowest bits of the hash, as the highest tell the slot. */
function taken(mask: number, mixed: number, entry: number): number {
  return mask === NUMBER ? (mixed << NUMBER_BITS) | (entry + 1) : entry + 1
}

function newTable(expected: number): Int32Array {
  return new Int32Array(Math.max(SMALLEST, Math.ceil((expected * SPARE) / FULLEST)))
}

function newChunk(): Chunk {
  return {
    rows: new Int32Array(CHUNK * ROW),
    states: new Uint16Array(CHUNK),
    highs: undefined,
    firsts: undefined,
  }
}

function firstSlot({ length }: Int32Array, mixed: number): number {
  // Any number of slots will do: a power of two could be twice what is needed.
  return Math.floor((mixed * length) / 2 ** 32)
}

function nextSlot(table: Int32Array, slot: number): number {
  return slot + 1 === table.length ? 0 : slot + 1
}

/** @param bytes and `at`: where inode and birth time lie */
function hashAt(bytes: DataView, at: number): number {
  return hash(
    bytes.getInt32(at, true),
    bytes.getInt32(at + 4, true),
    bytes.getInt32(at + 8, true),
    bytes.getInt32(at + 12, true),
  )
}

/** Mixes all bits, as inode numbers come in rows (MurmurHash3's last steps). */
function hash(a: number, b: number, c: number, d: number): number {
  let mixed = Math.imul(a ^ Math.imul(b, 0x9e3779b1) ^ Math.imul(c, 0x85ebca6b) ^ Math.imul(d, 0xc2b2ae35), 0x27d4eb2f)
  mixed = Math.imul(mixed ^ (mixed >>> 15), 0x2c1b3c6d)
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0x297a2d39)
  return (mixed ^ (mixed >>> 16)) >>> 0
}
