const MAX_INLINE = 8
const FREE_SLOT = 0
// A search ends at a free slot.
const MAX_LOAD = 0.8

/**
 * A set of names, each given by its `hashName`. One inode can have millions of names, so a table takes eight bytes for
 * each.
 */
export class NameSet {
  #inline: number[] | undefined = []
  #table = new Float64Array(0)
  size = 0

  add(name: number): void {
    if (this.#inline?.includes(name)) return
    if (this.#inline && this.#inline.length < MAX_INLINE) {
      this.size = this.#inline.push(name)
      return
    }
    if (this.size >= this.#table.length * MAX_LOAD) this.#grow()
    const slot = this.#findSlot(name)
    if (this.#table[slot] === name) return
    this.#table[slot] = name
    this.size++
  }

  has(name: number): boolean {
    return this.#inline?.includes(name) ?? this.#table[this.#findSlot(name)] === name
  }

  #grow(): void {
    const old = this.#inline ?? this.#table
    this.#inline = undefined
    this.#table = new Float64Array(Math.max(4 * MAX_INLINE, this.#table.length * 2))
    for (const name of old) if (name !== FREE_SLOT) this.#table[this.#findSlot(name)] = name
  }

  #findSlot(name: number): number {
    let slot = name % this.#table.length
    while (this.#table[slot] !== FREE_SLOT && this.#table[slot] !== name) slot = (slot + 1) % this.#table.length
    return slot
  }
}

const LOW_WORD = 0xffffffffn
// Differs in each process, so that users who choose the names cannot choose their slots.
const SEED = [0, 0].map(() => Math.floor(Math.random() * 2 ** 32)) as [number, number]

/**
 * Returns a number from 1 to 2^53 that identifies a name within a volume, in this process.
 * Two names may, very rarely, have the same number: an inode then seems to have one name fewer, and is skipped.
 */
export function hashName(directory: { inode: bigint; born: bigint }, entry: Uint8Array): number {
  let [a, b] = SEED
  const mix = (word: number) => {
    // FNV-1a, with two primes.
    a = Math.imul(a ^ word, 0x01000193)
    b = Math.imul(b ^ word, 0x85ebca6b) ^ (b >>> 13)
  }
  for (const number of [directory.inode, directory.born]) {
    mix(Number(number & LOW_WORD))
    mix(Number((number >> 32n) & LOW_WORD))
  }
  for (const byte of entry) mix(byte)
  // The last bytes have changed few bits so far.
  mix(a >>> 16)
  mix(b >>> 15)
  return (a >>> 0) * 2 ** 21 + (b >>> 11) + 1
}
