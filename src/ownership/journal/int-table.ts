import { freeBuffer } from './tables.ts'

/** Words of a key that each row has. The fourth word is a sparse column. */
const KEY_WORDS_PER_ROW = 3
const FREE_SLOT_VALUE = 0
const MIN_HASH_SLOTS = 16
// A search ends at a free slot, so the table is never full.
const MAX_HASH_LOAD_FACTOR = 0.8
const HASH_SLOT_SPARE_FACTOR = 1.05
const HASH_TABLE_GROWTH_FACTOR = 1.5
/** A slot holds bits of the hash above the entry's number, so that a search reads only the row that it looks for. */
const ENTRY_NUMBER_BITS = 24
const ENTRY_NUMBER_MASK = (1 << ENTRY_NUMBER_BITS) - 1
// Rows are allocated in chunks: growing one array would need a copy, and memory for both at once.
const CHUNK_INDEX_BITS = 14
const ROWS_PER_CHUNK = 1 << CHUNK_INDEX_BITS
const CHUNK_INDEX_MASK = ROWS_PER_CHUNK - 1
const MIN_ROWS_PER_CHUNK = 16
// Differs in each process, so that users who choose the keys cannot choose their slots.
const KEY_HASH_SEED = Math.floor(Math.random() * 2 ** 32)

/**
 * A hash table of rows of 32-bit integers: a key of four words, then values. A volume can have millions of inodes, and a
 * Map needs ten times the memory.
 * A row is known by its entry number, which stays the same until the entry is deleted. Numbers are counted from 0 in
 * the order of insertion; the numbers of deleted entries are used again.
 * The last word of the key, and sparse values, are mostly 0. They take memory only in chunks where one is not.
 */
export class IntHashTable {
  /** Number of entries. */
  size = 0
  /** All entry numbers are below it. */
  end = 0
  /** Entry numbers, counted from 1, with bits of their hashes where the numbers leave space. */
  #slots: Int32Array
  readonly #width: number
  readonly #rows: Int32Array[] = []
  /** The last word of each key, then the sparse values. */
  readonly #sparse: (Int32Array | undefined)[][]
  readonly #freeEntries: number[] = []

  /**
   * @param values number of values in a row
   * @param sparseValues number of further values that are mostly 0
   * @param expected estimated number of entries; the table grows
   */
  constructor(values: number, sparseValues = 0, expected = 0) {
    this.#width = KEY_WORDS_PER_ROW + values
    this.#sparse = Array.from({ length: 1 + sparseValues }, () => [])
    this.#slots = createHashSlots(expected)
  }

  /** Returns the entry of a key; undefined: there is none. */
  find(a: number, b: number, c = 0, d = 0): number | undefined {
    const slots = this.#slots
    const hash = hashKey(a, b, c, d)
    const mask = getEntryNumberMask(slots)
    for (let slot = findFirstSlot(slots, hash); ; slot = findNextSlot(slots, slot)) {
      const value = slots[slot] as number
      if (value === FREE_SLOT_VALUE) return undefined
      const entry = (value & mask) - 1
      if (value === composeSlotValue(mask, hash, entry) && this.hasKey(entry, a, b, c, d)) return entry
    }
  }

  /** Returns whether this is the key of the entry. A deleted entry has the key 0. */
  hasKey(entry: number, a: number, b: number, c = 0, d = 0): boolean {
    const rows = this.#rows[entry >> CHUNK_INDEX_BITS] as Int32Array
    const row = (entry & CHUNK_INDEX_MASK) * this.#width
    return (
      rows[row] === (a | 0) &&
      rows[row + 1] === (b | 0) &&
      rows[row + 2] === (c | 0) &&
      this.#getSparse(0, entry) === (d | 0)
    )
  }

  /** Inserts a key that the table does not have. @returns its entry, with values of 0 */
  insert(a: number, b: number, c = 0, d = 0): number {
    if (this.size >= this.#slots.length * MAX_HASH_LOAD_FACTOR) this.#grow()
    const entry = this.#freeEntries.pop() ?? this.#append()
    const rows = this.#rows[entry >> CHUNK_INDEX_BITS] as Int32Array
    const row = (entry & CHUNK_INDEX_MASK) * this.#width
    rows[row] = a
    rows[row + 1] = b
    rows[row + 2] = c
    this.#setSparse(0, entry, d)
    insertIntoFreeSlot(this.#slots, hashKey(a, b, c, d), entry)
    this.size++
    return entry
  }

  #append(): number {
    const entry = this.end++
    const rows = this.#rows[entry >> CHUNK_INDEX_BITS]
    const index = entry & CHUNK_INDEX_MASK
    if (rows === undefined || rows.length <= index * this.#width)
      this.#rows[entry >> CHUNK_INDEX_BITS] = extendRowChunk(rows, index, entry >> CHUNK_INDEX_BITS, this.#width)
    return entry
  }

  /** Returns a word of an entry's key. */
  getKey(entry: number, word: number): number {
    return word < KEY_WORDS_PER_ROW ? this.get(entry, word - KEY_WORDS_PER_ROW) : this.#getSparse(0, entry)
  }

  get(entry: number, value: number): number {
    const rows = this.#rows[entry >> CHUNK_INDEX_BITS] as Int32Array
    return rows[(entry & CHUNK_INDEX_MASK) * this.#width + KEY_WORDS_PER_ROW + value] as number
  }

  set(entry: number, value: number, number: number): void {
    const rows = this.#rows[entry >> CHUNK_INDEX_BITS] as Int32Array
    rows[(entry & CHUNK_INDEX_MASK) * this.#width + KEY_WORDS_PER_ROW + value] = number
  }

  getSparse(entry: number, value: number): number {
    return this.#getSparse(1 + value, entry)
  }

  setSparse(entry: number, value: number, number: number): void {
    this.#setSparse(1 + value, entry, number)
  }

  /** Deletes an entry. Its row becomes 0. */
  delete(entry: number): void {
    this.#freeSlot(entry)
    const row = (entry & CHUNK_INDEX_MASK) * this.#width
    this.#rows[entry >> CHUNK_INDEX_BITS]?.fill(0, row, row + this.#width)
    for (let column = 0; column < this.#sparse.length; column++) this.#setSparse(column, entry, 0)
    this.#freeEntries.push(entry)
    this.size--
  }

  /** Frees an entry's slot, and moves later entries towards their first slots, so that no search ends at the gap. */
  #freeSlot(entry: number): void {
    const slots = this.#slots
    const mask = getEntryNumberMask(slots)
    let gap = findFirstSlot(slots, this.#hashEntry(entry))
    while (((slots[gap] as number) & mask) !== entry + 1) gap = findNextSlot(slots, gap)
    for (let slot = findNextSlot(slots, gap); slots[slot] !== FREE_SLOT_VALUE; slot = findNextSlot(slots, slot)) {
      const value = slots[slot] as number
      const first = findFirstSlot(slots, this.#hashEntry((value & mask) - 1))
      if (countSlotsBetween(slots, first, slot) < countSlotsBetween(slots, gap, slot)) continue
      slots[gap] = value
      gap = slot
    }
    slots[gap] = FREE_SLOT_VALUE
  }

  #grow(): void {
    freeBuffer(this.#slots)
    this.#slots = createHashSlots(this.size * HASH_TABLE_GROWTH_FACTOR)
    const free = new Set(this.#freeEntries)
    // In the order of the rows, because a random order would miss the processor's cache for each.
    for (let entry = 0; entry < this.end; entry++)
      if (!free.has(entry)) insertIntoFreeSlot(this.#slots, this.#hashEntry(entry), entry)
  }

  #hashEntry(entry: number): number {
    const rows = this.#rows[entry >> CHUNK_INDEX_BITS] as Int32Array
    const row = (entry & CHUNK_INDEX_MASK) * this.#width
    return hashKey(rows[row] as number, rows[row + 1] as number, rows[row + 2] as number, this.#getSparse(0, entry))
  }

  #getSparse(column: number, entry: number): number {
    const chunk = (this.#sparse[column] as (Int32Array | undefined)[])[entry >> CHUNK_INDEX_BITS]
    const index = entry & CHUNK_INDEX_MASK
    return chunk === undefined || index >= chunk.length ? 0 : (chunk[index] as number)
  }

  #setSparse(column: number, entry: number, number: number): void {
    const chunks = this.#sparse[column] as (Int32Array | undefined)[]
    const at = entry >> CHUNK_INDEX_BITS
    const index = entry & CHUNK_INDEX_MASK
    let chunk = chunks[at]
    if (chunk === undefined || index >= chunk.length) {
      if (number === 0) return
      chunk = extendRowChunk(chunk, index, at, 1)
      chunks[at] = chunk
    }
    chunk[index] = number
  }
}

/** Returns a chunk that has the index. The first one begins small, because most tables are. */
function extendRowChunk(chunk: Int32Array | undefined, index: number, at: number, width: number): Int32Array {
  let length = at > 0 ? ROWS_PER_CHUNK : MIN_ROWS_PER_CHUNK
  while (length <= index) length *= 2
  const extended = new Int32Array(length * width)
  if (chunk) extended.set(chunk)
  return extended
}

/** Returns the upper word of an integer, which may have 53 bits. `number | 0` is the lower one. */
export function getHighWord(number: number): number {
  return Math.floor(number / 2 ** 32)
}

/** Inserts an entry that is in no slot yet. */
function insertIntoFreeSlot(slots: Int32Array, hash: number, entry: number): void {
  let slot = findFirstSlot(slots, hash)
  while (slots[slot] !== FREE_SLOT_VALUE) slot = findNextSlot(slots, slot)
  slots[slot] = composeSlotValue(getEntryNumberMask(slots), hash, entry)
}

/** Returns the mask of the entry's number in a slot. */
function getEntryNumberMask({ length }: Int32Array): number {
  return length <= ENTRY_NUMBER_MASK ? ENTRY_NUMBER_MASK : -1
}

/** Returns the value of an entry's slot. It has the lowest bits of the hash, because the highest select the slot. */
function composeSlotValue(mask: number, hash: number, entry: number): number {
  return mask === ENTRY_NUMBER_MASK ? (hash << ENTRY_NUMBER_BITS) | (entry + 1) : entry + 1
}

function createHashSlots(expected: number): Int32Array {
  return new Int32Array(Math.max(MIN_HASH_SLOTS, Math.ceil((expected * HASH_SLOT_SPARE_FACTOR) / MAX_HASH_LOAD_FACTOR)))
}

function findFirstSlot({ length }: Int32Array, hash: number): number {
  // Any number of slots works. A power of two could be twice the size needed.
  return Math.floor((hash * length) / 2 ** 32)
}

function findNextSlot(slots: Int32Array, slot: number): number {
  return slot + 1 === slots.length ? 0 : slot + 1
}

function countSlotsBetween({ length }: Int32Array, from: number, to: number): number {
  return to >= from ? to - from : to - from + length
}

/** Mixes all bits of each word, because inode numbers are often consecutive (MurmurHash3's finalizer). */
function hashKey(a: number, b: number, c: number, d: number): number {
  let mixed = Math.imul(KEY_HASH_SEED ^ a, 0x27d4eb2f)
  mixed = Math.imul(mixed ^ (mixed >>> 15) ^ b, 0x9e3779b1)
  mixed = Math.imul(mixed ^ (mixed >>> 15) ^ c, 0x85ebca6b)
  mixed = Math.imul(mixed ^ (mixed >>> 15) ^ d, 0x2c1b3c6d)
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0x297a2d39)
  return (mixed ^ (mixed >>> 16)) >>> 0
}
