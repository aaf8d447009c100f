import { NumberSet } from '../journal/number-set.ts'
import { release } from '../journal/tables.ts'
import { nameNumber } from './name-set.ts'
import { FEWEST_PLACES, FULLEST, roomFor } from './room.ts'

const FREE = 0
const REMOVED = 1
const FIRST_ID = 2
const NO_NAME = new Uint8Array()

/** How many names of an inode were counted, all while its ctime was the same. */
export interface LinkCount {
  /** Another for each count of which names may be kept. */
  id: number
  /** ctime, milliseconds. */
  changed: number
  count: number
}

/** The counts of many inodes: 32 bytes for a place, no object for each. */
export class LinkCounts {
  /** Inodes that have a count. */
  size = 0
  /** Inode and birth time of each place in turn. */
  #keys = new BigInt64Array(2 * FEWEST_PLACES)
  #changed = new Float64Array(FEWEST_PLACES)
  #ids = new Uint32Array(FEWEST_PLACES)
  #counts = new Uint32Array(FEWEST_PLACES)
  #taken = 0
  #last = FIRST_ID - 1
  /** Ids of which no name is kept: those that are in use stay small numbers. */
  #free: number[] = []
  /** Ids that are not in use, of which names may be kept. */
  #given: number[] = []

  get(inode: bigint, born: bigint): LinkCount | undefined {
    const at = this.#placeOf(inode, born)
    const id = this.#ids[at] as number
    if (id < FIRST_ID) return undefined
    return { id, changed: this.#changed[at] as number, count: this.#counts[at] as number }
  }

  /** Begins an inode's count, in the place of the one it has. */
  begin(inode: bigint, born: bigint, changed: number): LinkCount {
    if (this.#taken >= this.#ids.length * FULLEST) this.#makeRoom()
    const at = this.#placeOf(inode, born)
    const before = this.#ids[at] as number
    if (before === FREE) this.#taken++
    if (before < FIRST_ID) this.size++
    else this.#giveUp(at)
    const count = { id: this.#free.pop() ?? ++this.#last, changed, count: 0 }
    this.#put(at, inode, born, count)
    return count
  }

  #giveUp(at: number): void {
    const ids = this.#counts[at] === 0 ? this.#free : this.#given
    ids.push(this.#ids[at] as number)
  }

  increment(inode: bigint, born: bigint): void {
    const at = this.#placeOf(inode, born)
    this.#counts[at] = (this.#counts[at] as number) + 1
  }

  /** @param inode that has a count */
  remove(inode: bigint, born: bigint): void {
    const at = this.#placeOf(inode, born)
    this.#giveUp(at)
    this.#ids[at] = REMOVED
    this.size--
  }

  /** Those in use, as names of others are kept no more from now on. */
  keepOnly(): NumberSet {
    this.#free = this.#free.concat(this.#given)
    this.#given = []
    const ids = new NumberSet()
    for (const id of this.#ids) if (id >= FIRST_ID) ids.add(id)
    return ids
  }

  #makeRoom(): void {
    const [keys, changed, ids, counts] = [this.#keys, this.#changed, this.#ids, this.#counts]
    const places = roomFor(this.size, ids.length)
    this.#keys = new BigInt64Array(2 * places)
    this.#changed = new Float64Array(places)
    this.#ids = new Uint32Array(places)
    this.#counts = new Uint32Array(places)
    this.#taken = this.size
    for (const [at, id] of ids.entries()) {
      if (id < FIRST_ID) continue
      const [inode, born] = [keys[2 * at] as bigint, keys[2 * at + 1] as bigint]
      const count = { id, changed: changed[at] as number, count: counts[at] as number }
      this.#put(this.#placeOf(inode, born), inode, born, count)
    }
    for (const old of [keys, changed, ids, counts]) release(old)
  }

  #put(at: number, inode: bigint, born: bigint, { id, changed, count }: LinkCount): void {
    this.#keys[2 * at] = inode
    this.#keys[2 * at + 1] = born
    this.#ids[at] = id
    this.#changed[at] = changed
    this.#counts[at] = count
  }

  /** Where an inode's count is, was, or can be put. */
  #placeOf(inode: bigint, born: bigint): number {
    const ids = this.#ids
    const signed = BigInt.asIntN(64, inode)
    let at = nameNumber({ inode: BigInt.asUintN(64, inode), born }, NO_NAME) % ids.length
    while (ids[at] !== FREE && (this.#keys[2 * at] !== signed || this.#keys[2 * at + 1] !== born))
      at = (at + 1) % ids.length
    return at
  }
}
