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
  /** Numbers of entries, counted from 1. */
  #table: Int32Array
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
    if (this.#count >= this.#table.length * FULLEST) this.#grow()
    const slot = this.#slotOf(bytes, at)
    const known = this.#table[slot] as number
    const entry = known === FREE ? this.#append(bytes, at, slot) : known - 1
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

  #append(bytes: DataView, at: number, slot: number): number {
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
    this.#table[slot] = entry + 1
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
    const known = this.#table[this.#slotOf(bytes, at)] as number
    return known === FREE || this.lastIn(known - 1) < 0 ? undefined : known - 1
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

  /** The slot that has the key's entry, or that is free for it. */
  #slotOf(bytes: DataView, at: number): number {
    const table = this.#table
    const a = bytes.getInt32(at, true)
    const b = bytes.getInt32(at + 4, true)
    const c = bytes.getInt32(at + 8, true)
    const d = bytes.getInt32(at + 12, true)
    for (let slot = firstSlot(table, a, b, c, d); ; slot = nextSlot(table, slot)) {
      const known = table[slot] as number
      if (known === FREE) return slot
      const { rows, highs } = this.#chunkOf(known - 1)
      const index = (known - 1) % CHUNK
      const row = index * ROW
      if (rows[row] !== a || rows[row + 1] !== c || rows[row + 2] !== d) continue
      if ((highs === undefined ? 0 : highs[index]) === b) return slot
    }
  }

  #grow(): void {
    const table = newTable(this.#count * 1.5)
    for (let entry = 0; entry < this.#count; entry++) {
      const { rows, highs } = this.#chunkOf(entry)
      const index = entry % CHUNK
      const row = index * ROW
      const high = highs === undefined ? 0 : (highs[index] as number)
      let slot = firstSlot(table, rows[row] as number, high, rows[row + 1] as number, rows[row + 2] as number)
      while (table[slot] !== FREE) slot = nextSlot(table, slot)
      table[slot] = entry + 1
    }
    this.#table = table
  }
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

function firstSlot(table: Int32Array, a: number, b: number, c: number, d: number): number {
  // Any number of slots will do: a power of two could be twice what is needed.
  return Math.floor((hash(a, b, c, d) * table.length) / 2 ** 32)
}

function nextSlot(table: Int32Array, slot: number): number {
  return slot + 1 === table.length ? 0 : slot + 1
}

/** Mixes all bits, as inode numbers come in rows (MurmurHash3's last steps). */
function hash(a: number, b: number, c: number, d: number): number {
  let mixed = Math.imul(a ^ Math.imul(b, 0x9e3779b1) ^ Math.imul(c, 0x85ebca6b) ^ Math.imul(d, 0xc2b2ae35), 0x27d4eb2f)
  mixed = Math.imul(mixed ^ (mixed >>> 15), 0x2c1b3c6d)
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0x297a2d39)
  return (mixed ^ (mixed >>> 16)) >>> 0
}
