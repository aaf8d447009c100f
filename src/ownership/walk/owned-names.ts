import { freeBuffer } from '../journal/tables.ts'
import { computeSlots, MAX_LOAD, MIN_SLOTS } from './table-size.ts'

const FREE_SLOT = 0

/** A set of names with their owners. Each name is given by its `hashName`, and takes 12 bytes. */
export class OwnedNames {
  #names = new Float64Array(MIN_SLOTS)
  #owners = new Uint32Array(MIN_SLOTS)
  #usedSlots = 0
  #droppedCount = 0

  /** Number of names whose owners still need them. */
  get size(): number {
    return this.#usedSlots - this.#droppedCount
  }

  /**
   * @param owners returns the owners that still need their names; other names are dropped if the table is full
   * @returns whether the name is new for its owner
   */
  add(name: number, owner: number, owners: () => { has(owner: number): boolean }): boolean {
    if (this.#usedSlots >= this.#names.length * MAX_LOAD) this.#rebuild(owners())
    const slot = this.#findSlot(name, owner)
    if (this.#names[slot] !== FREE_SLOT) return false
    this.#put(slot, name, owner)
    return true
  }

  /** Marks an owner's names as not needed. @param count number of its names */
  drop(count: number): void {
    this.#droppedCount += count
  }

  #rebuild(owners: { has(owner: number): boolean }): void {
    const [names, ids] = [this.#names, this.#owners]
    const places = computeSlots(this.size, names.length)
    this.#names = new Float64Array(places)
    this.#owners = new Uint32Array(places)
    this.#usedSlots = 0
    this.#droppedCount = 0
    for (const [slot, name] of names.entries()) {
      const owner = ids[slot] as number
      if (name !== FREE_SLOT && owners.has(owner)) this.#put(this.#findSlot(name, owner), name, owner)
    }
    for (const old of [names, ids]) freeBuffer(old)
  }

  #put(slot: number, name: number, owner: number): void {
    this.#names[slot] = name
    this.#owners[slot] = owner
    this.#usedSlots++
  }

  #findSlot(name: number, owner: number): number {
    const names = this.#names
    let slot = name % names.length
    while (names[slot] !== FREE_SLOT && (names[slot] !== name || this.#owners[slot] !== owner))
      slot = (slot + 1) % names.length
    return slot
  }
}
