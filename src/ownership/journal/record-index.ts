// An entry's row: low word of the inode, two words of its birth time, position of its last record counted from 1.
const ROW_WORDS = 4
const LAST_COLUMN = 3
const FORGOTTEN = 0
// Entries are allocated in chunks: growing one array would need a copy, and memory for both at once.
const CHUNK_BITS = 14
const CHUNK_ENTRIES = 1 << CHUNK_BITS
const VISITED = 0x8000
const FREE_SLOT = 0
const MIN_SLOTS = 1024
// A search ends at a free slot, so the table is never full.
const MAX_LOAD = 0.8
const SPARE_FACTOR = 1.05
/** A slot holds bits of the hash above the entry's number, so that a search reads only the row that it looks for. */
const NUMBER_BITS = 24
const NUMBER_MASK = (1 << NUMBER_BITS) - 1

/** A chunk of entries. Arrays that few file systems and inodes need are allocated only where one does. */
interface EntryChunk {
  rows: Int32Array
  /** See StateTable; the VISITED bit is set once a walk has visited the inode. */
  states: Uint16Array
  /** High words of the inodes. Undefined: all are 0. */
  highs: Int32Array | undefined
  /** Positions of the first records, counted from 1. Undefined: they equal the last. */
  firsts: Int32Array | undefined
}

/**
 * Maps an inode to the positions of its first record, which has the original state, and of its last.
 * An entry takes 18 bytes, because a volume can have millions of inodes. Entries keep the order of insertion, which
 * mostly is the order of the lookups. An open-addressed table holds their numbers.
 */
export class RecordIndex {
  /** Entry numbers, counted from 1, with bits of their hashes where the numbers leave space. */
  #table: Int32Array
  /** The entry after the last one found, which mostly is the next one looked up. */
  #next = 0
  readonly #chunks: EntryChunk[] = []
  /** Number of entries, with those of forgotten inodes. */
  #count = 0
  /** Number of inodes with a record. */
  size = 0

  /** @param expected estimated number of inodes; the table grows */
  constructor(expected: number) {
    this.#table = createTable(expected)
  }

  /**
   * @param bytes and `at`: inode and birth time, 16 bytes
   * @param place position of a record, counted from 0
   * @returns the number of its entry
   */
  add(bytes: DataView, at: number, place: number): number {
    const entry = this.#findEntry(bytes, at) ?? this.#append(bytes, at)
    const chunk = this.#getChunk(entry)
    const index = entry % CHUNK_ENTRIES
    const last = chunk.rows[index * ROW_WORDS + LAST_COLUMN] as number
    if (last === FORGOTTEN) {
      this.size++
      if (chunk.firsts) chunk.firsts[index] = place + 1
    } else
      chunk.firsts ??= Int32Array.from(
        { length: CHUNK_ENTRIES },
        (_, at) => chunk.rows[at * ROW_WORDS + LAST_COLUMN] as number,
      )
    chunk.rows[index * ROW_WORDS + LAST_COLUMN] = place + 1
    return entry
  }

  #append(bytes: DataView, at: number): number {
    if (this.#count >= this.#table.length * MAX_LOAD) this.#grow()
    const entry = this.#count++
    if (entry % CHUNK_ENTRIES === 0) this.#chunks.push(createChunk())
    const chunk = this.#getChunk(entry)
    const index = entry % CHUNK_ENTRIES
    const high = bytes.getInt32(at + 4, true)
    chunk.rows[index * ROW_WORDS] = bytes.getInt32(at, true)
    chunk.rows[index * ROW_WORDS + 1] = bytes.getInt32(at + 8, true)
    chunk.rows[index * ROW_WORDS + 2] = bytes.getInt32(at + 12, true)
    if (high !== 0) chunk.highs ??= new Int32Array(CHUNK_ENTRIES)
    if (chunk.highs) chunk.highs[index] = high
    insertEntry(this.#table, hashKey(bytes, at), entry)
    return entry
  }

  getState(entry: number): number {
    return (this.#getChunk(entry).states[entry % CHUNK_ENTRIES] as number) & ~VISITED
  }

  setState(entry: number, state: number): void {
    this.#getChunk(entry).states[entry % CHUNK_ENTRIES] = state
  }

  markVisited(bytes: DataView, at: number): void {
    const entry = this.find(bytes, at)
    if (entry === undefined) return
    const { states } = this.#getChunk(entry)
    states[entry % CHUNK_ENTRIES] = (states[entry % CHUNK_ENTRIES] as number) | VISITED
  }

  /** Returns inode and birth time in turn of the inodes that have a record and were not visited. */
  listUnvisited(): BigInt64Array {
    const words: number[] = []
    for (let entry = 0; entry < this.#count; entry++) {
      const { rows, states, highs } = this.#getChunk(entry)
      const index = entry % CHUNK_ENTRIES
      const row = index * ROW_WORDS
      if (rows[row + LAST_COLUMN] === FORGOTTEN || ((states[index] as number) & VISITED) !== 0) continue
      words.push(rows[row] as number, highs?.[index] ?? 0, rows[row + 1] as number, rows[row + 2] as number)
    }
    return new BigInt64Array(Int32Array.from(words).buffer)
  }

  remove(bytes: DataView, at: number): void {
    const entry = this.find(bytes, at)
    if (entry === undefined) return
    this.#getChunk(entry).rows[(entry % CHUNK_ENTRIES) * ROW_WORDS + LAST_COLUMN] = FORGOTTEN
    this.size--
  }

  /** Returns the entry of an inode that has a record. */
  find(bytes: DataView, at: number): number | undefined {
    const entry = this.#findEntry(bytes, at)
    return entry === undefined || this.getLast(entry) < 0 ? undefined : entry
  }

  /** Positions of the first and the last record of an entry. */
  getFirst(entry: number): number {
    const { firsts } = this.#getChunk(entry)
    return firsts === undefined ? this.getLast(entry) : (firsts[entry % CHUNK_ENTRIES] as number) - 1
  }

  getLast(entry: number): number {
    return (this.#getChunk(entry).rows[(entry % CHUNK_ENTRIES) * ROW_WORDS + LAST_COLUMN] as number) - 1
  }

  #getChunk(entry: number): EntryChunk {
    return this.#chunks[entry >> CHUNK_BITS] as EntryChunk
  }

  /** Also finds a forgotten inode. */
  #findEntry(bytes: DataView, at: number): number | undefined {
    const entry = this.#hasKey(this.#next, bytes, at) ? this.#next : this.#search(bytes, at)
    if (entry !== undefined) this.#next = entry + 1
    return entry
  }

  #search(bytes: DataView, at: number): number | undefined {
    const table = this.#table
    const mixed = hashKey(bytes, at)
    const mask = getNumberMask(table)
    for (let slot = findFirstSlot(table, mixed); ; slot = findNextSlot(table, slot)) {
      const known = table[slot] as number
      if (known === FREE_SLOT) return undefined
      const entry = (known & mask) - 1
      if (known === composeSlot(mask, mixed, entry) && this.#hasKey(entry, bytes, at)) return entry
    }
  }

  #hasKey(entry: number, bytes: DataView, at: number): boolean {
    if (entry >= this.#count) return false
    const { rows, highs } = this.#getChunk(entry)
    const index = entry % CHUNK_ENTRIES
    const row = index * ROW_WORDS
    return (
      rows[row] === bytes.getInt32(at, true) &&
      rows[row + 1] === bytes.getInt32(at + 8, true) &&
      rows[row + 2] === bytes.getInt32(at + 12, true) &&
      (highs === undefined ? 0 : highs[index]) === bytes.getInt32(at + 4, true)
    )
  }

  #grow(): void {
    const table = createTable(this.#count * 1.5)
    for (let entry = 0; entry < this.#count; entry++) {
      const { rows, highs } = this.#getChunk(entry)
      const index = entry % CHUNK_ENTRIES
      const row = index * ROW_WORDS
      const high = highs === undefined ? 0 : (highs[index] as number)
      insertEntry(table, hashWords(rows[row] as number, high, rows[row + 1] as number, rows[row + 2] as number), entry)
    }
    this.#table = table
  }
}

/** Inserts an entry that is in no slot yet. */
function insertEntry(table: Int32Array, mixed: number, entry: number): void {
  let slot = findFirstSlot(table, mixed)
  while (table[slot] !== FREE_SLOT) slot = findNextSlot(table, slot)
  table[slot] = composeSlot(getNumberMask(table), mixed, entry)
}

/** Returns the mask of the entry's number in a slot. */
function getNumberMask({ length }: Int32Array): number {
  return length <= NUMBER_MASK ? NUMBER_MASK : -1
}

/** Returns the value of an entry's slot. It has the lowest bits of the hash, because the highest select the slot. */
function composeSlot(mask: number, mixed: number, entry: number): number {
  return mask === NUMBER_MASK ? (mixed << NUMBER_BITS) | (entry + 1) : entry + 1
}

function createTable(expected: number): Int32Array {
  return new Int32Array(Math.max(MIN_SLOTS, Math.ceil((expected * SPARE_FACTOR) / MAX_LOAD)))
}

function createChunk(): EntryChunk {
  return {
    rows: new Int32Array(CHUNK_ENTRIES * ROW_WORDS),
    states: new Uint16Array(CHUNK_ENTRIES),
    highs: undefined,
    firsts: undefined,
  }
}

function findFirstSlot({ length }: Int32Array, mixed: number): number {
  // Any number of slots works. A power of two could be twice the size needed.
  return Math.floor((mixed * length) / 2 ** 32)
}

function findNextSlot(table: Int32Array, slot: number): number {
  return slot + 1 === table.length ? 0 : slot + 1
}

/** @param bytes and `at`: inode and birth time */
function hashKey(bytes: DataView, at: number): number {
  return hashWords(
    bytes.getInt32(at, true),
    bytes.getInt32(at + 4, true),
    bytes.getInt32(at + 8, true),
    bytes.getInt32(at + 12, true),
  )
}

/** Mixes all bits, because inode numbers are often consecutive (MurmurHash3's finalizer). */
function hashWords(a: number, b: number, c: number, d: number): number {
  let mixed = Math.imul(a ^ Math.imul(b, 0x9e3779b1) ^ Math.imul(c, 0x85ebca6b) ^ Math.imul(d, 0xc2b2ae35), 0x27d4eb2f)
  mixed = Math.imul(mixed ^ (mixed >>> 15), 0x2c1b3c6d)
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0x297a2d39)
  return (mixed ^ (mixed >>> 16)) >>> 0
}
