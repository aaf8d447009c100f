import type { Dirents } from '../../host/dirents.ts'
import type { Handle, Inodes, Look, Name, Sights } from '../../host/host.ts'

// Longer names are looked at alone.
const LONGEST_NAME = 255

/** Some entries of a block, none known to be a directory, that are looked at together. */
export class EntryRun implements Disposable {
  count = 0
  /** Whether they are opened too. */
  isHeld = false
  /** Milliseconds: all has been seen after it. */
  time = 0
  readonly #inodes: Inodes
  readonly #sights: Sights
  readonly #places: Int32Array
  #isSeen = true
  /** Handles from here on are not taken. */
  #next = 0

  /** @param most entries */
  constructor(inodes: Inodes, sights: Sights, most: number) {
    this.#inodes = inodes
    this.#sights = sights
    this.#places = new Int32Array(Math.min(sights.size, most))
  }

  /**
   * Begins to look at those that come next in the block, and leaves it before what may be a directory.
   * @param isAhead while others are dealt with
   */
  begin(directory: Handle, block: Dirents, isHeld: boolean, isAhead: boolean): void {
    this.count = 0
    while (this.count < this.#places.length && block.next()) {
      const { nameLength } = block
      if (!block.isFile || nameLength > LONGEST_NAME) {
        block.back()
        break
      }
      this.#sights.setName(this.count, block.bytes, block.nameStart, nameLength)
      this.#places[this.count++] = block.place
    }
    this.isHeld = isHeld
    this.time = Date.now()
    this.#next = 0
    if (this.count === 0) return
    this.#isSeen = false
    if (isHeld) this.#sights.hold(directory, this.count, isAhead)
    else this.#sights.look(directory, this.count, isAhead)
  }

  /** Returns when all have been looked at. */
  finish(): void {
    if (this.#isSeen) return
    this.#sights.finish()
    this.#isSeen = true
  }

  placeOf(at: number): number {
    return this.#places[at] as number
  }

  nameOf(at: number): Name {
    return this.#sights.nameOf(at)
  }

  /** Undefined where it must be looked at alone. */
  stat(at: number): Look | undefined {
    return this.#sights.stat(at)
  }

  /** The caller's from now on; of each in turn. */
  takeHandle(at: number): Handle | undefined {
    this.#next = at + 1
    return this.#sights.handle(at)
  }

  attributeNames(at: number): string | undefined {
    return this.#sights.attributeNames(at)
  }

  /** Closes what was not taken. */
  [Symbol.dispose](): void {
    this.finish()
    for (; this.isHeld && this.#next < this.count; this.#next++) {
      const handle = this.#sights.handle(this.#next)
      if (handle !== undefined) this.#inodes.close(handle)
    }
  }
}
