import type { Dirents } from '../../host/dirents.ts'
import type { Handle, Inodes, Name, StatBatch, StatView } from '../../host/host.ts'

// Longer names are inspected one by one.
const MAX_NAME_BYTES = 255

/** Entries of a block that are inspected together; none is known to be a directory. */
export class EntryRun implements Disposable {
  count = 0
  /** Whether the entries are opened, too. */
  opensEntries = false
  /** Time before the first of them was inspected. */
  startedAtMs = 0
  readonly #inodes: Inodes
  readonly #sights: StatBatch
  readonly #positions: Int32Array
  #isFinished = true
  /** Handles from this index on are not taken yet. */
  #nextHandle = 0

  /** @param most maximum number of entries */
  constructor(inodes: Inodes, sights: StatBatch, most: number) {
    this.#inodes = inodes
    this.#sights = sights
    this.#positions = new Int32Array(Math.min(sights.size, most))
  }

  /**
   * Starts to inspect the next entries of the block, and stops before one that may be a directory.
   * @param isAhead the entries are inspected while others are dealt with
   */
  start(directory: Handle, block: Dirents, opensEntries: boolean, isAhead: boolean): void {
    this.count = 0
    while (this.count < this.#positions.length && block.next()) {
      const { nameLength } = block
      if (!block.isFile || nameLength > MAX_NAME_BYTES) {
        block.back()
        break
      }
      this.#sights.setName(this.count, block.bytes, block.nameStart, nameLength)
      this.#positions[this.count++] = block.place
    }
    this.opensEntries = opensEntries
    this.startedAtMs = Date.now()
    this.#nextHandle = 0
    if (this.count === 0) return
    this.#isFinished = false
    if (opensEntries) this.#sights.hold(directory, this.count, isAhead)
    else this.#sights.look(directory, this.count, isAhead)
  }

  /** Waits until all entries are inspected. */
  finish(): void {
    if (this.#isFinished) return
    this.#sights.finish()
    this.#isFinished = true
  }

  getPosition(index: number): number {
    return this.#positions[index] as number
  }

  getName(index: number): Name {
    return this.#sights.nameOf(index)
  }

  /** Returns undefined if the entry must be inspected by itself. */
  stat(index: number): StatView | undefined {
    return this.#sights.stat(index)
  }

  /** Hands the handle over to the caller. Call it for each entry in turn. */
  takeHandle(index: number): Handle | undefined {
    this.#nextHandle = index + 1
    return this.#sights.handle(index)
  }

  attributeNames(index: number): string | undefined {
    return this.#sights.attributeNames(index)
  }

  /** Closes the handles that were not taken. */
  [Symbol.dispose](): void {
    this.finish()
    for (; this.opensEntries && this.#nextHandle < this.count; this.#nextHandle++) {
      const handle = this.#sights.handle(this.#nextHandle)
      if (handle !== undefined) this.#inodes.close(handle)
    }
  }
}
