import { type FileChange, type Handle, isDirectory, type StatView } from '../../kernel/host.ts'
import { CHMOD_MODE_BITS, type Ownership } from '../inode/policy.ts'
import { composeRecordFromParts, concatBytes, createDataView, type EncodedRecord } from '../journal/codec.ts'
import {
  getRecordPathOffset,
  PLAIN_RECORD_BYTES,
  RECORD_BYTES_AFTER_PATH,
  RECORD_KEY_OFFSET,
  writePlainRecord,
  writeTargetOwnership,
} from '../journal/layout.ts'
import { isWideningGroupBits, type PlainInode } from './change.ts'
import { measureEntryPath, writeEntryPath } from './entry.ts'
import type { PlainInodeStrategy } from './strategies.ts'

const INITIAL_RECORD_BYTES = 1 << 17
const CLOSED_HANDLE = -1

/**
 * Plain inodes and their encoded records. They are stored in columns: objects that live until a change is made would
 * cost the garbage collector more time than the walk takes.
 */
export class PlainInodeColumns {
  count = 0
  readonly #handles: Int32Array
  readonly #seenGroups: Uint32Array
  /** Modes with type bits. */
  readonly #seenModes: Uint16Array
  /** ctime, and the time before it was read; milliseconds. */
  readonly #changed: Float64Array
  readonly #inspectedAtMs: Float64Array
  readonly #targetGroups: Uint32Array
  readonly #targetModes: Uint16Array
  /** Offset of each record, and the end of the last. */
  readonly #starts: Uint32Array
  #bytes = new Uint8Array(INITIAL_RECORD_BYTES)
  #view = createDataView(this.#bytes)

  constructor(maxCount: number) {
    this.#handles = new Int32Array(maxCount)
    this.#seenGroups = new Uint32Array(maxCount)
    this.#seenModes = new Uint16Array(maxCount)
    this.#changed = new Float64Array(maxCount)
    this.#inspectedAtMs = new Float64Array(maxCount)
    this.#targetGroups = new Uint32Array(maxCount)
    this.#targetModes = new Uint16Array(maxCount)
    this.#starts = new Uint32Array(maxCount + 1)
  }

  /**
   * @param inspectedAtMs time before stat was called; `parentPath` and `name`: its path; `after`: its target state
   * @returns false if the path is too long; the inode is not added
   */
  add(
    handle: Handle,
    seen: StatView,
    inspectedAtMs: number,
    parentPath: Uint8Array,
    name: Uint8Array,
    after: PlainInodeStrategy,
  ): boolean {
    const length = measureEntryPath(parentPath, name)
    if (length === undefined) return false
    const index = this.count
    const start = this.#starts[index] as number
    if (start + PLAIN_RECORD_BYTES + length > this.#bytes.length) this.#grow()
    const pathLength = writeEntryPath(this.#bytes, getRecordPathOffset(start), parentPath, name)
    const [gid, mode] = [after.group(seen), after.mode(seen)]
    this.#handles[index] = handle
    this.#seenGroups[index] = seen.gid
    this.#seenModes[index] = seen.mode
    this.#changed[index] = seen.changed
    this.#inspectedAtMs[index] = inspectedAtMs
    this.#targetGroups[index] = gid
    this.#targetModes[index] = mode
    this.#starts[index + 1] = writePlainRecord(this.#view, start, seen, pathLength, gid, mode)
    this.count++
    return true
  }

  #grow(): void {
    const bytes = new Uint8Array(this.#bytes.length * 2)
    bytes.set(this.#bytes)
    this.#bytes = bytes
    this.#view = createDataView(bytes)
  }

  /** Sets the target state. */
  setTarget(index: number, gid: number, mode: number): void {
    this.#targetGroups[index] = gid
    this.#targetModes[index] = mode
    writeTargetOwnership(this.#view, this.#starts[index] as number, gid, mode)
  }

  /** Returns undefined if the handle was dropped. */
  getHandle(index: number): Handle | undefined {
    const handle = this.#handles[index] as Handle
    return handle === CLOSED_HANDLE ? undefined : handle
  }

  dropHandle(index: number): void {
    this.#handles[index] = CLOSED_HANDLE
  }

  getInode(index: number, handle: Handle): PlainInode {
    const stat = {
      gid: this.#seenGroups[index] as number,
      mode: this.#seenModes[index] as number,
      changed: this.#changed[index] as number,
    }
    return { handle, stat, inspectedAtMs: this.#inspectedAtMs[index] as number }
  }

  isDirectoryAt(index: number): boolean {
    return isDirectory({ mode: this.#seenModes[index] as number })
  }

  getSeen(index: number): Ownership {
    return { gid: this.#seenGroups[index] as number, mode: (this.#seenModes[index] as number) & CHMOD_MODE_BITS }
  }

  /** Writes the inode's change for another thread. */
  putChange(index: number, handle: Handle, change: FileChange): void {
    const seenMode = this.#seenModes[index] as number
    const mode = this.#targetModes[index] as number
    change.handle = handle
    change.seenGroup = this.#seenGroups[index] as number
    change.seenMode = seenMode
    change.changed = this.#changed[index] as number
    change.needsSameTime = isWideningGroupBits(seenMode & CHMOD_MODE_BITS, mode)
    change.group = this.#targetGroups[index] as number
    change.mode = mode
  }

  getInspectedAtMs(index: number): number {
    return this.#inspectedAtMs[index] as number
  }

  getTarget(index: number): Ownership {
    return { gid: this.#targetGroups[index] as number, mode: this.#targetModes[index] as number }
  }

  /** Returns whether the change needs both chown and chmod. */
  needsTwoCalls(index: number): boolean {
    const { gid, mode } = this.getSeen(index)
    return gid !== this.#targetGroups[index] && mode !== this.#targetModes[index]
  }

  getPath(index: number): Uint8Array {
    const start = getRecordPathOffset(this.#starts[index] as number)
    return this.#bytes.slice(start, (this.#starts[index + 1] as number) - RECORD_BYTES_AFTER_PATH)
  }

  /** Copies inode and birth time. */
  putKey(keys: BigInt64Array, at: number, index: number): void {
    const start = (this.#starts[index] as number) + RECORD_KEY_OFFSET
    keys[at * 2] = this.#view.getBigInt64(start, true)
    keys[at * 2 + 1] = this.#view.getBigInt64(start + 8, true)
  }

  /** Returns the encoded records of some inodes; undefined: of all, valid until the next inode is added. */
  records(indexes: readonly number[] | undefined): Uint8Array {
    if (indexes === undefined) return this.#bytes.subarray(0, this.#starts[this.count])
    return concatBytes(indexes.map((index) => this.#bytes.subarray(this.#starts[index], this.#starts[index + 1])))
  }

  /** @param recorded the journal's record of the inode */
  getRecord(index: number, recorded: EncodedRecord | undefined): EncodedRecord {
    const columnsRecord = { chunk: this.#view, at: this.#starts[index] as number }
    return recorded ? composeRecordFromParts(recorded, columnsRecord) : columnsRecord
  }
}
