import { quoteValue, Refusal } from '../../errors/refusal.ts'
import { formatInodeKey } from '../inode/record.ts'
import { getHighWord, IntHashTable } from '../journal/int-table.ts'
import { WeightedCache } from '../journal/weighted-cache.ts'

/** An inode visited under one of its names. */
export interface HardLinkVisit {
  inode: bigint
  born: bigint
  links: number
  /** ctime, and the time when it was read; milliseconds. */
  changed: number
  statTimeMs: number
  /** Identifies the name within the volume: see hashEntryName. */
  name: number
  path: Uint8Array
}

// A pod can create any number of them.
const MAX_LINKED_INODES = 200_000

/**
 * Accepts an inode under the first name that a walk visits. A restore puts the inode back then, so its other names need
 * nothing.
 * The set of inodes is limited. An inode beyond it is visited again under another name: nothing is left to restore, and
 * it is counted twice.
 */
export class FirstLinkFilter {
  readonly #most: number
  readonly #visited = new Set<string>()

  /** @param most maximum number of remembered inodes */
  constructor(most = MAX_LINKED_INODES) {
    this.#most = most
  }

  addName(inode: Pick<HardLinkVisit, 'inode' | 'born'>): boolean {
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
const CTIME_CLOCK_TICKS_MS = 20

/** Estimated memory of a name and of an inode. */
const MEMORY_BYTES_PER_NAME = 16
const MEMORY_BYTES_PER_INODE = 70
/** Two million names of one inode. With garbage, and tables that are being replaced, a walk stays below 256 MB. */
const MAX_HARD_LINK_MEMORY_BYTES = 36_000_000
const MAX_REMEMBERED_PATH_BYTES = 10_000_000
const REMEMBERED_PATH_OVERHEAD_BYTES = 250

/** Values of a count: the id of its names, their number, and the inode's ctime as the two words of a float. */
const NAMES_ID_COLUMN = 0
const NAME_COUNT_COLUMN = 1
const CTIME_LOW_COLUMN = 2
const CTIME_HIGH_COLUMN = 3
const COUNT_TABLE_COLUMNS = 4
/** Word of a name's key that has the id of its count. */
const NAME_KEY_ID_WORD = 2

/** Names are pruned when their number has grown by this factor since the last time. */
const NAME_PRUNE_FACTOR = 1.5
const MIN_PRUNED_NAMES = 64

/**
 * Accepts an inode once all of its names were visited within the volume. An inode with more links may also be a file of
 * somewhere else, which must not be changed.
 * Only different names count, because a directory that is moved ahead of the walk shows the same names again. A rename
 * of a name moves ctime, and the count restarts. A ctime that is so recent that the next rename might not move it is
 * not counted on.
 */
export class HardLinkCounter {
  readonly #most: number
  /** Number of each inode's names that were counted while its ctime was the same. Keys: inode and birth time. */
  readonly #counts = new IntHashTable(COUNT_TABLE_COLUMNS)
  /** Names that were counted. Keys: the name and the id of its count. */
  readonly #names = new IntHashTable(0)
  /** Names of ended counts that were not pruned yet. */
  #droppedNames = 0
  #pruneAt = MIN_PRUNED_NAMES
  /** A new count gets a new id. After 2^32 of them an id returns, but its old names were pruned long before. */
  #lastId = 0
  /** Paths of the inodes that were visited last, by the ids of their counts. */
  readonly #paths = new WeightedCache<number, Uint8Array>(MAX_REMEMBERED_PATH_BYTES)
  /** Inode, birth time and ctime of the current name, to be read as words. */
  readonly #words = new DataView(new ArrayBuffer(24))

  /** @param most limit in bytes of the remembered names and inodes */
  constructor(most = MAX_HARD_LINK_MEMORY_BYTES) {
    this.#most = most
  }

  /**
   * @returns whether this name completes the inode's links
   * @throws {Refusal} if there are too many names to remember
   */
  addName(sighting: HardLinkVisit): boolean {
    const { links, changed, statTimeMs, name, path } = sighting
    const entry = this.#findOrBeginCount(sighting)
    const id = this.#counts.get(entry, NAMES_ID_COLUMN)
    let count = this.#counts.get(entry, NAME_COUNT_COLUMN)
    if (statTimeMs - changed > CTIME_CLOCK_TICKS_MS && this.#rememberName(name, id))
      this.#counts.set(entry, NAME_COUNT_COLUMN, ++count)
    if (count >= links) {
      this.#endLinkCount(entry)
      this.#counts.delete(entry)
      return true
    }
    this.#paths.put(id, path, path.length + REMEMBERED_PATH_OVERHEAD_BYTES)
    this.#assertMemory(sighting)
    return false
  }

  /** Returns the entry of the inode's count, which begins anew if its ctime has moved. */
  #findOrBeginCount({ inode, born, changed }: HardLinkVisit): number {
    const [words, counts] = [this.#words, this.#counts]
    words.setBigUint64(0, inode, true)
    words.setBigInt64(8, born, true)
    words.setFloat64(16, changed, true)
    const [a, d] = [words.getInt32(0, true), words.getInt32(4, true)]
    const [b, c] = [words.getInt32(8, true), words.getInt32(12, true)]
    const [low, high] = [words.getInt32(16, true), words.getInt32(20, true)]
    const known = counts.find(a, b, c, d)
    if (known !== undefined) {
      if (counts.get(known, CTIME_LOW_COLUMN) === low && counts.get(known, CTIME_HIGH_COLUMN) === high) return known
      this.#endLinkCount(known)
    }
    const entry = known ?? counts.insert(a, b, c, d)
    counts.set(entry, NAMES_ID_COLUMN, ++this.#lastId)
    counts.set(entry, NAME_COUNT_COLUMN, 0)
    counts.set(entry, CTIME_LOW_COLUMN, low)
    counts.set(entry, CTIME_HIGH_COLUMN, high)
    return entry
  }

  /** Ends the count of an inode, and frees the names that were kept for it. */
  #endLinkCount(entry: number): void {
    this.#droppedNames += this.#counts.get(entry, NAME_COUNT_COLUMN)
    this.#paths.delete(this.#counts.get(entry, NAMES_ID_COLUMN))
  }

  /** @returns whether the name is new for its count */
  #rememberName(name: number, id: number): boolean {
    const [low, high] = [name | 0, getHighWord(name)]
    if (this.#names.find(low, high, id) !== undefined) return false
    if (this.#names.size >= this.#pruneAt) this.#pruneNames()
    this.#names.insert(low, high, id)
    return true
  }

  /** Deletes the names of ended counts. */
  #pruneNames(): void {
    const [counts, names] = [this.#counts, this.#names]
    const ids = new IntHashTable(0, 0, counts.size)
    // A deleted count has id 0, which no name has.
    for (let entry = 0; entry < counts.end; entry++)
      if (counts.get(entry, NAMES_ID_COLUMN) !== 0) ids.insert(counts.get(entry, NAMES_ID_COLUMN), 0)
    for (let entry = 0; entry < names.end; entry++) {
      const id = names.getKey(entry, NAME_KEY_ID_WORD)
      if (id !== 0 && ids.find(id, 0) === undefined) names.delete(entry)
    }
    this.#droppedNames = 0
    this.#pruneAt = Math.max(MIN_PRUNED_NAMES, names.size * NAME_PRUNE_FACTOR)
  }

  #assertMemory({ links, path }: HardLinkVisit): void {
    const [names, inodes] = [this.#names.size - this.#droppedNames, this.#counts.size]
    if (MEMORY_BYTES_PER_NAME * names + MEMORY_BYTES_PER_INODE * inodes <= this.#most) return
    throw Refusal.of(
      'hard-links',
      `the volume has more hard links than a walk can remember: ${names} names were met whose inodes (${inodes}) have others, ` +
        `the last one is ${quoteValue(Buffer.from(path).toString())}, of an inode with ${links} names`,
      `remove hard links, or have the group given without a walk ("ownership": "idmap")`,
    )
  }

  /** Yields a visited name of each inode that has other names. For inodes beyond the limit it yields undefined. */
  *listOutside(): Generator<Uint8Array | undefined> {
    yield* this.#paths.values()
    for (let at = this.#paths.size; at < this.#counts.size; at++) yield undefined
  }
}
