const FEW = 8
const FREE = 0
// A search ends at a free place.
const FULLEST = 0.8

/**
 * Names that are different, each told by a number of `nameNumber`. Of one inode there can be millions: a table of eight
 * bytes a name.
 */
export class NameSet {
  #few: number[] | undefined = []
  #table = new Float64Array(0)
  size = 0

  add(name: number): void {
    if (this.#few?.includes(name)) return
    if (this.#few && this.#few.length < FEW) {
      this.size = this.#few.push(name)
      return
    }
    if (this.size >= this.#table.length * FULLEST) this.#grow()
    const at = this.#placeOf(name)
    if (this.#table[at] === name) return
    this.#table[at] = name
    this.size++
  }

  has(name: number): boolean {
    return this.#few?.includes(name) ?? this.#table[this.#placeOf(name)] === name
  }

  #grow(): void {
    const old = this.#few ?? this.#table
    this.#few = undefined
    this.#table = new Float64Array(Math.max(4 * FEW, this.#table.length * 2))
    for (const name of old) if (name !== FREE) this.#table[this.#placeOf(name)] = name
  }

  #placeOf(name: number): number {
    let at = name % this.#table.length
    while (this.#table[at] !== FREE && this.#table[at] !== name) at = (at + 1) % this.#table.length
    return at
  }
}

const LOW = 0xffffffffn
// Another in each process: who chooses the names must not choose their places in a table.
const SEED = [0, 0].map(() => Math.floor(Math.random() * 2 ** 32)) as [number, number]

/**
 * Tells a name from others of a volume, in this process: a whole number from 1 to 2^53. Two names may have one, most unlikely: an inode
 * then seems to have a name fewer, and is left.
 */
export function nameNumber(directory: { inode: bigint; born: bigint }, entry: Uint8Array): number {
  let [a, b] = SEED
  const mix = (word: number) => {
    // FNV-1a, with two primes.
    a = Math.imul(a ^ word, 0x01000193)
    b = Math.imul(b ^ word, 0x85ebca6b) ^ (b >>> 13)
  }
  for (const number of [directory.inode, directory.born]) {
    mix(Number(number & LOW))
    mix(Number((number >> 32n) & LOW))
  }
  for (const byte of entry) mix(byte)
  // The last bytes have moved few bits yet.
  mix(a >>> 16)
  mix(b >>> 15)
  return (a >>> 0) * 2 ** 21 + (b >>> 11) + 1
}
