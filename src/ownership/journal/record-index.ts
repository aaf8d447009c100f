// A slot: inode and birth time in four words, the places of the first record and of the last, each counted from 1, and
// the number of its states (see StateTable).
const FIRST = 4
const LAST = 5
const STATE = 6
const SLOT = 7
const FREE = 0
const FORGOTTEN = -1
const SMALLEST = 1024
// Of the slots at most so many are taken: a search ends at a free one.
const FULLEST = 0.8
const SPARE = 1.05

/**
 * Where the records of an inode stand among all that were read: the first, which has what the inode was, and the last.
 * An open-addressed table of 28 bytes a slot, as a volume may have millions of inodes.
 */
export class RecordIndex {
  #table = new Int32Array(0)
  #slots = 0
  /** Slots that are not free, with those of forgotten inodes. */
  #taken = 0
  /** Inodes with a record. */
  size = 0

  /** @param expected about so many inodes: it grows, but that needs memory for both tables */
  constructor(expected: number) {
    this.#resize(expected)
  }

  /**
   * @param bytes and `at`: where inode and birth time lie, 16 bytes
   * @param place of a record, counted from 0
   * @returns its slot, true until the next one is added
   */
  add(bytes: DataView, at: number, place: number): number {
    if (this.#taken > this.#slots * FULLEST) this.#resize(this.size * 1.5)
    const slot = this.#slotOf(bytes, at)
    if (this.#table[slot + LAST] === FREE) {
      for (let word = 0; word < FIRST; word++) this.#table[slot + word] = bytes.getInt32(at + word * 4, true)
      this.#taken++
    }
    if (!this.#isRecorded(slot)) {
      this.#table[slot + FIRST] = place + 1
      this.size++
    }
    this.#table[slot + LAST] = place + 1
    return slot
  }

  stateIn(slot: number): number {
    return this.#table[slot + STATE] as number
  }

  setState(slot: number, state: number): void {
    this.#table[slot + STATE] = state
  }

  remove(bytes: DataView, at: number): void {
    const slot = this.#slotOf(bytes, at)
    if (!this.#isRecorded(slot)) return
    this.#table[slot + LAST] = FORGOTTEN
    this.size--
  }

  /** The slot of an inode that has a record. */
  find(bytes: DataView, at: number): number | undefined {
    const slot = this.#slotOf(bytes, at)
    return this.#isRecorded(slot) ? slot : undefined
  }

  /** The places of the first record and of the last in a slot that was found. */
  firstIn(slot: number): number {
    return (this.#table[slot + FIRST] as number) - 1
  }

  lastIn(slot: number): number {
    return (this.#table[slot + LAST] as number) - 1
  }

  #isRecorded(slot: number): boolean {
    return (this.#table[slot + LAST] as number) > FREE
  }

  /** The slot that has the key, or that is free for it. */
  #slotOf(bytes: DataView, at: number): number {
    const table = this.#table
    const a = bytes.getInt32(at, true)
    const b = bytes.getInt32(at + 4, true)
    const c = bytes.getInt32(at + 8, true)
    const d = bytes.getInt32(at + 12, true)
    // Any number of slots will do: a power of two could be twice what is needed.
    let slot = Math.floor((hash(a, b, c, d) * this.#slots) / 2 ** 32) * SLOT
    for (; ; slot = slot + SLOT === table.length ? 0 : slot + SLOT) {
      if (table[slot + LAST] === FREE) return slot
      if (table[slot] === a && table[slot + 1] === b && table[slot + 2] === c && table[slot + 3] === d) return slot
    }
  }

  #resize(expected: number): void {
    const old = this.#table
    this.#slots = Math.max(SMALLEST, Math.ceil((expected * SPARE) / FULLEST))
    this.#table = new Int32Array(this.#slots * SLOT)
    this.#taken = this.size
    const bytes = new DataView(old.buffer)
    for (let slot = 0; slot < old.length; slot += SLOT) {
      if ((old[slot + LAST] as number) > FREE)
        this.#table.set(old.subarray(slot, slot + SLOT), this.#slotOf(bytes, slot * 4))
    }
  }
}

/** Mixes all bits, as inode numbers come in rows (MurmurHash3's last steps). */
function hash(a: number, b: number, c: number, d: number): number {
  let mixed = Math.imul(a ^ Math.imul(b, 0x9e3779b1) ^ Math.imul(c, 0x85ebca6b) ^ Math.imul(d, 0xc2b2ae35), 0x27d4eb2f)
  mixed = Math.imul(mixed ^ (mixed >>> 15), 0x2c1b3c6d)
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0x297a2d39)
  return (mixed ^ (mixed >>> 16)) >>> 0
}
