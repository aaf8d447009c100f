import { NumberSet } from '../journal/number-set.ts'
import { freeBuffer } from '../journal/tables.ts'
import { hashName } from './name-set.ts'
import { computeSlots, MAX_LOAD, MIN_SLOTS } from './table-size.ts'

const FREE_SLOT = 0
const REMOVED_SLOT = 1
const FIRST_ID = 2
const NO_NAME = new Uint8Array()

/** Number of an inode's names that were counted while its ctime was the same. */
export interface LinkCount {
  /** Owner of the names in OwnedNames. A new count gets another id. */
  id: number
  /** ctime, milliseconds. */
  changed: number
  count: number
}

/** Counts of many inodes. A slot takes 32 bytes, without an object for each inode. */
export class LinkCounts {
  /** Number of inodes with a count. */
  size = 0
  /** Inode and birth time of each slot in turn. */
  #keys = new BigInt64Array(2 * MIN_SLOTS)
  #changed = new Float64Array(MIN_SLOTS)
  #ids = new Uint32Array(MIN_SLOTS)
  #counts = new Uint32Array(MIN_SLOTS)
  #usedSlots = 0
  #lastId = FIRST_ID - 1
  /** Ids without stored names. They are reused, so that ids stay small numbers. */
  #freeIds: number[] = []
  /** Unused ids that may still have stored names. */
  #reusableIds: number[] = []

  get(inode: bigint, born: bigint): LinkCount | undefined {
    const slot = this.#findSlot(inode, born)
    const id = this.#ids[slot] as number
    if (id < FIRST_ID) return undefined
    return { id, changed: this.#changed[slot] as number, count: this.#counts[slot] as number }
  }

  /** Starts an inode's count, and replaces an earlier one. */
  begin(inode: bigint, born: bigint, changed: number): LinkCount {
    if (this.#usedSlots >= this.#ids.length * MAX_LOAD) this.#rebuild()
    const slot = this.#findSlot(inode, born)
    const before = this.#ids[slot] as number
    if (before === FREE_SLOT) this.#usedSlots++
    if (before < FIRST_ID) this.size++
    else this.#releaseId(slot)
    const count = { id: this.#freeIds.pop() ?? ++this.#lastId, changed, count: 0 }
    this.#put(slot, inode, born, count)
    return count
  }

  #releaseId(slot: number): void {
    const ids = this.#counts[slot] === 0 ? this.#freeIds : this.#reusableIds
    ids.push(this.#ids[slot] as number)
  }

  increment(inode: bigint, born: bigint): void {
    const slot = this.#findSlot(inode, born)
    this.#counts[slot] = (this.#counts[slot] as number) + 1
  }

  /** @param inode an inode with a count */
  remove(inode: bigint, born: bigint): void {
    const slot = this.#findSlot(inode, born)
    this.#releaseId(slot)
    this.#ids[slot] = REMOVED_SLOT
    this.size--
  }

  /** Returns the ids in use. The caller drops the names of all others. */
  collectUsedIds(): NumberSet {
    this.#freeIds = this.#freeIds.concat(this.#reusableIds)
    this.#reusableIds = []
    const ids = new NumberSet()
    for (const id of this.#ids) if (id >= FIRST_ID) ids.add(id)
    return ids
  }

  #rebuild(): void {
    const [keys, changed, ids, counts] = [this.#keys, this.#changed, this.#ids, this.#counts]
    const places = computeSlots(this.size, ids.length)
    this.#keys = new BigInt64Array(2 * places)
    this.#changed = new Float64Array(places)
    this.#ids = new Uint32Array(places)
    this.#counts = new Uint32Array(places)
    this.#usedSlots = this.size
    for (const [slot, id] of ids.entries()) {
      if (id < FIRST_ID) continue
      const [inode, born] = [keys[2 * slot] as bigint, keys[2 * slot + 1] as bigint]
      const count = { id, changed: changed[slot] as number, count: counts[slot] as number }
      this.#put(this.#findSlot(inode, born), inode, born, count)
    }
    for (const old of [keys, changed, ids, counts]) freeBuffer(old)
  }

  #put(slot: number, inode: bigint, born: bigint, { id, changed, count }: LinkCount): void {
    this.#keys[2 * slot] = inode
    this.#keys[2 * slot + 1] = born
    this.#ids[slot] = id
    this.#changed[slot] = changed
    this.#counts[slot] = count
  }

  /** Returns the slot of the inode, or a free one. */
  #findSlot(inode: bigint, born: bigint): number {
    const ids = this.#ids
    const signed = BigInt.asIntN(64, inode)
    let slot = hashName({ inode: BigInt.asUintN(64, inode), born }, NO_NAME) % ids.length
    while (ids[slot] !== FREE_SLOT && (this.#keys[2 * slot] !== signed || this.#keys[2 * slot + 1] !== born))
      slot = (slot + 1) % ids.length
    return slot
  }
}
