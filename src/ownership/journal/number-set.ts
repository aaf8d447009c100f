const INITIAL_BYTES = 128

/** A set of numbers from 0 on, with one bit for each up to the largest: there can be millions. */
export class NumberSet {
  #bits = new Uint8Array(INITIAL_BYTES)

  add(number: number): void {
    const at = Math.floor(number / 8)
    if (at >= this.#bits.length) {
      const bits = new Uint8Array(2 * at)
      bits.set(this.#bits)
      this.#bits = bits
    }
    this.#bits[at] = (this.#bits[at] as number) | (1 << (number % 8))
  }

  has(number: number): boolean {
    return ((this.#bits[Math.floor(number / 8)] ?? 0) & (1 << (number % 8))) !== 0
  }
}
