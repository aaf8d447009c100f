import { type FileChange, type Handle, isDirectory, type Look } from '../../host/host.ts'
import { type Ownership, PERMISSIONS } from '../inode/policy.ts'
import { compose, type Encoded, joined, viewOf } from '../journal/codec.ts'
import { KEY } from '../journal/layout.ts'
import { AFTER_PATH, PLAIN, pathAt, writeAfter, writePlain } from '../journal/plain-record.ts'
import { opensGroup, type PlainInode } from './change.ts'
import { putPath, roomFor } from './entry.ts'
import type { PlainRule } from './tasks.ts'

const FIRST_ROOM = 1 << 17
const GONE = -1

/**
 * What is known of plain inodes, and the record of each as it goes to the journal. In columns: objects that live until a
 * change is made would keep the collector busier than the walk.
 */
export class PlainColumns {
  count = 0
  readonly #handles: Int32Array
  readonly #seenGroups: Uint32Array
  /** With type bits. */
  readonly #seenModes: Uint16Array
  /** ctime, and when it was asked for; milliseconds. */
  readonly #changed: Float64Array
  readonly #times: Float64Array
  readonly #groups: Uint32Array
  readonly #modes: Uint16Array
  /** Where each record begins, and the next one would. */
  readonly #starts: Uint32Array
  #bytes = new Uint8Array(FIRST_ROOM)
  #view = viewOf(this.#bytes)

  /** @param size how many there may be */
  constructor(size: number) {
    this.#handles = new Int32Array(size)
    this.#seenGroups = new Uint32Array(size)
    this.#seenModes = new Uint16Array(size)
    this.#changed = new Float64Array(size)
    this.#times = new Float64Array(size)
    this.#groups = new Uint32Array(size)
    this.#modes = new Uint16Array(size)
    this.#starts = new Uint32Array(size + 1)
  }

  /**
   * @param at when it was looked at, milliseconds; `above` and `name`: its path; `after`: what it is to have
   * @returns false where it is not taken: its path is too long
   */
  add(handle: Handle, seen: Look, at: number, above: Uint8Array, name: Uint8Array, after: PlainRule): boolean {
    const room = roomFor(above, name)
    if (room === undefined) return false
    const index = this.count
    const start = this.#starts[index] as number
    if (start + PLAIN + room > this.#bytes.length) this.#grow()
    const pathLength = putPath(this.#bytes, pathAt(start), above, name)
    const [gid, mode] = [after.group(seen), after.mode(seen)]
    this.#handles[index] = handle
    this.#seenGroups[index] = seen.gid
    this.#seenModes[index] = seen.mode
    this.#changed[index] = seen.changed
    this.#times[index] = at
    this.#groups[index] = gid
    this.#modes[index] = mode
    this.#starts[index + 1] = writePlain(this.#view, start, seen, pathLength, gid, mode)
    this.count++
    return true
  }

  #grow(): void {
    const bytes = new Uint8Array(this.#bytes.length * 2)
    bytes.set(this.#bytes)
    this.#bytes = bytes
    this.#view = viewOf(bytes)
  }

  /** What its change is to make of it. */
  aim(index: number, gid: number, mode: number): void {
    this.#groups[index] = gid
    this.#modes[index] = mode
    writeAfter(this.#view, this.#starts[index] as number, gid, mode)
  }

  /** Undefined where it was let go of. */
  handleOf(index: number): Handle | undefined {
    const handle = this.#handles[index] as Handle
    return handle === GONE ? undefined : handle
  }

  dropHandle(index: number): void {
    this.#handles[index] = GONE
  }

  inodeOf(index: number, handle: Handle): PlainInode {
    const stat = {
      gid: this.#seenGroups[index] as number,
      mode: this.#seenModes[index] as number,
      changed: this.#changed[index] as number,
    }
    return { handle, stat, at: this.#times[index] as number }
  }

  isDirectoryAt(index: number): boolean {
    return isDirectory({ mode: this.#seenModes[index] as number })
  }

  seenOf(index: number): Ownership {
    return { gid: this.#seenGroups[index] as number, mode: (this.#seenModes[index] as number) & PERMISSIONS }
  }

  /** Its change, for another thread. */
  putChange(index: number, handle: Handle, change: FileChange): void {
    const seenMode = this.#seenModes[index] as number
    const mode = this.#modes[index] as number
    change.handle = handle
    change.seenGroup = this.#seenGroups[index] as number
    change.seenMode = seenMode
    change.changed = this.#changed[index] as number
    change.needsSameTime = opensGroup(seenMode & PERMISSIONS, mode)
    change.group = this.#groups[index] as number
    change.mode = mode
  }

  timeOf(index: number): number {
    return this.#times[index] as number
  }

  afterOf(index: number): Ownership {
    return { gid: this.#groups[index] as number, mode: this.#modes[index] as number }
  }

  /** Whether more than one call is needed to change it. */
  isTwofold(index: number): boolean {
    const { gid, mode } = this.seenOf(index)
    return gid !== this.#groups[index] && mode !== this.#modes[index]
  }

  pathOf(index: number): Uint8Array {
    const start = pathAt(this.#starts[index] as number)
    return this.#bytes.slice(start, (this.#starts[index + 1] as number) - AFTER_PATH)
  }

  /** Puts its inode and birth time. */
  putKey(keys: BigInt64Array, at: number, index: number): void {
    const start = (this.#starts[index] as number) + KEY
    keys[at * 2] = this.#view.getBigInt64(start, true)
    keys[at * 2 + 1] = this.#view.getBigInt64(start + 8, true)
  }

  /** The records of some, as the journal takes them; undefined: of all, true until the next inode is added. */
  records(some: readonly number[] | undefined): Uint8Array {
    if (some === undefined) return this.#bytes.subarray(0, this.#starts[this.count])
    return joined(some.map((index) => this.#bytes.subarray(this.#starts[index], this.#starts[index + 1])))
  }

  /** @param known what the journal holds of it */
  recordOf(index: number, known: Encoded | undefined): Encoded {
    const own = { chunk: this.#view, at: this.#starts[index] as number }
    return known ? compose(known, own) : own
  }
}
