import { quoted, Refusal } from '../../refusal/refusal.ts'
import { keyOf } from '../inode/record.ts'
import { Recent } from '../journal/recent.ts'
import { type LinkCount, LinkCounts } from './link-counts.ts'
import { OwnedNames } from './owned-names.ts'

/** An inode as it was met under one of its names. */
export interface Sighting {
  inode: bigint
  born: bigint
  links: number
  /** ctime, and when it was read; milliseconds. */
  changed: number
  at: number
  /** Tells the name from all others of the volume: see nameNumber. */
  name: number
  path: Uint8Array
}

// A pod can make any number of them.
const MOST_MET = 200_000

/**
 * Under the first: what was recorded is put back, and a second name says nothing new. Of many inodes some are met
 * under a second one: there is nothing left to put back then, and they are counted twice.
 */
export class FirstNames {
  readonly #most: number
  readonly #met = new Set<string>()

  /** @param most inodes that are remembered */
  constructor(most = MOST_MET) {
    this.#most = most
  }

  addName(inode: Pick<Sighting, 'inode' | 'born'>): boolean {
    const key = keyOf(inode)
    if (this.#met.has(key)) return false
    if (this.#met.size >= this.#most) this.#met.clear()
    this.#met.add(key)
    return true
  }

  outside(): [] {
    return []
  }
}

// Before Linux 6.13 file times tick with the timer, every 10 ms at most: a rename within the same tick would not show.
const TICKS_MS = 20

/** What a name and an inode take, about. */
const NAME = 16
const INODE = 70
/** Two million names of one inode: with the tables that larger ones replace, and garbage, a walk stays below 256 MB. */
const MOST_BYTES = 36_000_000
const MOST_PATHS = 10_000_000
const PATH = 250

/**
 * An inode with more links than were seen in the volume may be a file of somebody else's too. It may be changed at the
 * last of its names, when all have been seen inside. What counts is different names: a directory that is moved ahead of
 * the walk shows the same ones again. A rename of a name itself moves ctime, and the count starts anew; a ctime so
 * recent that the next rename might not move it is not counted on.
 */
export class HardLinks {
  readonly #most: number
  readonly #counts = new LinkCounts()
  readonly #names = new OwnedNames()
  /** Of the inodes that were met last. */
  readonly #paths = new Recent<number, Uint8Array>(MOST_PATHS)

  /** @param most bytes that names and inodes may take until all names were met */
  constructor(most = MOST_BYTES) {
    this.#most = most
  }

  /** @returns whether this name completes the inode's links @throws {Refusal} where there are too many to remember */
  addName(sighting: Sighting): boolean {
    const { inode, born, links, changed, at, name, path } = sighting
    const known = this.#counts.get(inode, born)
    const seen = known?.changed === changed ? known : this.#begin(sighting, known)
    if (at - changed > TICKS_MS && this.#names.add(name, seen.id, () => this.#counts.keepOnly())) {
      this.#counts.increment(inode, born)
      seen.count++
    }
    if (seen.count >= links) {
      this.#drop(seen)
      this.#counts.remove(inode, born)
      return true
    }
    this.#paths.put(seen.id, path, path.length + PATH)
    this.#check(sighting)
    return false
  }

  #begin({ inode, born, changed }: Sighting, known: LinkCount | undefined): LinkCount {
    if (known) this.#drop(known)
    return this.#counts.begin(inode, born, changed)
  }

  #drop({ id, count }: LinkCount): void {
    this.#names.drop(count)
    this.#paths.delete(id)
  }

  #check({ links, path }: Sighting): void {
    if (NAME * this.#names.size + INODE * this.#counts.size <= this.#most) return
    throw new Refusal(
      `the volume has more hard links than a walk can remember: ${this.#names.size} names were met whose inodes (${this.#counts.size}) have others, ` +
        `the last one is ${quoted(Buffer.from(path).toString())}, of an inode with ${links} names: remove hard links, or have the group given without a walk ("ownership": "idmap")`,
    )
  }

  /** Of each inode that has other names: one that was met, unless there are many. */
  *outside(): Generator<Uint8Array | undefined> {
    yield* this.#paths.values()
    for (let at = this.#paths.size; at < this.#counts.size; at++) yield undefined
  }
}
