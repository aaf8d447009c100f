import { quoted, Refusal } from '../../errors/refusal.ts'
import { formatInodeKey } from '../inode/record.ts'
import { WeightedCache } from '../journal/weighted-cache.ts'
import { type LinkCount, LinkCounts } from './link-counts.ts'
import { OwnedNames } from './owned-names.ts'

/** An inode visited under one of its names. */
export interface LinkSighting {
  inode: bigint
  born: bigint
  links: number
  /** ctime, and the time when it was read; milliseconds. */
  changed: number
  statTimeMs: number
  /** Identifies the name within the volume: see hashName. */
  name: number
  path: Uint8Array
}

// A pod can create any number of them.
const MAX_INODES = 200_000

/**
 * Accepts an inode under the first name that a walk visits. A restore puts the inode back then, so its other names need
 * nothing.
 * The set of inodes is limited. An inode beyond it is visited again under another name: nothing is left to restore, and
 * it is counted twice.
 */
export class FirstLinks {
  readonly #most: number
  readonly #visited = new Set<string>()

  /** @param most maximum number of remembered inodes */
  constructor(most = MAX_INODES) {
    this.#most = most
  }

  addName(inode: Pick<LinkSighting, 'inode' | 'born'>): boolean {
    const key = formatInodeKey(inode)
    if (this.#visited.has(key)) return false
    if (this.#visited.size >= this.#most) this.#visited.clear()
    this.#visited.add(key)
    return true
  }

  listOutside(): [] {
    return []
  }
}

// Before Linux 6.13, file times advance with the timer, every 10 ms at most. A rename within the same tick would not
// show.
const CLOCK_TICKS_MS = 20

/** Estimated memory of a name and of an inode. */
const NAME_BYTES = 16
const INODE_BYTES = 70
/** Two million names of one inode. With garbage, and tables that are being replaced, a walk stays below 256 MB. */
const MAX_BYTES = 36_000_000
const MAX_PATH_BYTES = 10_000_000
const PATH_OVERHEAD_BYTES = 250

/**
 * Accepts an inode once all of its names were visited within the volume. An inode with more links may also be a file of
 * somewhere else, which must not be changed.
 * Only different names count, because a directory that is moved ahead of the walk shows the same names again. A rename
 * of a name moves ctime, and the count restarts. A ctime that is so recent that the next rename might not move it is
 * not counted on.
 */
export class HardLinks {
  readonly #most: number
  readonly #counts = new LinkCounts()
  readonly #names = new OwnedNames()
  /** Paths of the inodes that were visited last. */
  readonly #paths = new WeightedCache<number, Uint8Array>(MAX_PATH_BYTES)

  /** @param most limit in bytes of the remembered names and inodes */
  constructor(most = MAX_BYTES) {
    this.#most = most
  }

  /**
   * @returns whether this name completes the inode's links
   * @throws {Refusal} if there are too many names to remember
   */
  addName(sighting: LinkSighting): boolean {
    const { inode, born, links, changed, statTimeMs, name, path } = sighting
    const earlier = this.#counts.get(inode, born)
    const seen = earlier?.changed === changed ? earlier : this.#begin(sighting, earlier)
    if (statTimeMs - changed > CLOCK_TICKS_MS && this.#names.add(name, seen.id, () => this.#counts.collectUsedIds())) {
      this.#counts.increment(inode, born)
      seen.count++
    }
    if (seen.count >= links) {
      this.#drop(seen)
      this.#counts.remove(inode, born)
      return true
    }
    this.#paths.put(seen.id, path, path.length + PATH_OVERHEAD_BYTES)
    this.#assertMemory(sighting)
    return false
  }

  #begin({ inode, born, changed }: LinkSighting, earlier: LinkCount | undefined): LinkCount {
    if (earlier) this.#drop(earlier)
    return this.#counts.begin(inode, born, changed)
  }

  #drop({ id, count }: LinkCount): void {
    this.#names.drop(count)
    this.#paths.delete(id)
  }

  #assertMemory({ links, path }: LinkSighting): void {
    if (NAME_BYTES * this.#names.size + INODE_BYTES * this.#counts.size <= this.#most) return
    throw new Refusal(
      `the volume has more hard links than a walk can remember: ${this.#names.size} names were met whose inodes (${this.#counts.size}) have others, ` +
        `the last one is ${quoted(Buffer.from(path).toString())}, of an inode with ${links} names: remove hard links, or have the group given without a walk ("ownership": "idmap")`,
    )
  }

  /** Yields a visited name of each inode that has other names. For inodes beyond the limit it yields undefined. */
  *listOutside(): Generator<Uint8Array | undefined> {
    yield* this.#paths.values()
    for (let at = this.#paths.size; at < this.#counts.size; at++) yield undefined
  }
}
