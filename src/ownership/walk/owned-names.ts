import { release } from '../journal/tables.ts'
import { FEWEST_PLACES, FULLEST, roomFor } from './room.ts'

const FREE = 0

/** Names that are different, each told by a number of `nameNumber`, and whose they are: 12 bytes for a place. */
export class OwnedNames {
  #names = new Float64Array(FEWEST_PLACES)
  #owners = new Uint32Array(FEWEST_PLACES)
  #taken = 0
  #dropped = 0

  /** Of owners that have not dropped theirs. */
  get size(): number {
    return this.#taken - this.#dropped
  }

  /**
   * @param owners those that have not dropped theirs: the names of others are given up, to make room
   * @returns whether the owner did not have the name
   */
  add(name: number, owner: number, owners: () => { has(owner: number): boolean }): boolean {
    if (this.#taken >= this.#names.length * FULLEST) this.#makeRoom(owners())
    const at = this.#placeOf(name, owner)
    if (this.#names[at] !== FREE) return false
    this.#put(at, name, owner)
    return true
  }

  /** An owner needs its names no more. @param count how many it had */
  drop(count: number): void {
    this.#dropped += count
  }

  #makeRoom(owners: { has(owner: number): boolean }): void {
    const [names, ids] = [this.#names, this.#owners]
    const places = roomFor(this.size, names.length)
    this.#names = new Float64Array(places)
    this.#owners = new Uint32Array(places)
    this.#taken = 0
    this.#dropped = 0
    for (const [at, name] of names.entries()) {
      const owner = ids[at] as number
      if (name !== FREE && owners.has(owner)) this.#put(this.#placeOf(name, owner), name, owner)
    }
    for (const old of [names, ids]) release(old)
  }

  #put(at: number, name: number, owner: number): void {
    this.#names[at] = name
    this.#owners[at] = owner
    this.#taken++
  }

  #placeOf(name: number, owner: number): number {
    const names = this.#names
    let at = name % names.length
    while (names[at] !== FREE && (names[at] !== name || this.#owners[at] !== owner)) at = (at + 1) % names.length
    return at
  }
}
