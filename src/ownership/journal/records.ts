import type { NumberSet } from './acl-table.ts'
import {
  composeRecordFromParts,
  createDataView,
  type EncodedRecord,
  joinEncodedRecords,
  readRecordAclNumbers,
} from './codec.ts'
import {
  findRecordStarts,
  isForgottenInodeRecord,
  isPlainInodeRecord,
  NO_ACL_NUMBER,
  PLAIN_RECORD_BYTES,
  RECORD_KEY_OFFSET,
  readOriginalOwnership,
  readTargetOwnership,
} from './layout.ts'
import { InodeStateTable, NO_STATE_ID, type RecordedInodeStates, RecordIndex } from './record-index.ts'
import { freeBuffer, type RecordBatch, type RecordLog } from './tables.ts'

// Repeated walks visit a tree in the same order, so few batches suffice.
const MAX_CACHED_BATCHES = 4
/** Size of a record with a short path. An index that is too large costs less than one that must grow. */
const TYPICAL_RECORD_BYTES = PLAIN_RECORD_BYTES + 6
const MIN_RECORDS_TO_COMPACT = 10_000
const RECORDS_PER_BATCH = 1000

/** A batch of the log. `start`: position of its first record in the whole log. */
interface PositionedLogBatch extends Omit<RecordBatch, 'records'> {
  start: number
}

interface LoadedRecordBatch {
  records: DataView
  starts: Int32Array
}

/** A record, and the batch of its latest version. */
export interface LocatedRecord extends EncodedRecord {
  batch: bigint
}

/** The records of a log by inode. The original state of an inode is recorded once. */
export class IndexedRecordLog {
  readonly #log: RecordLog
  readonly #acls: Pick<NumberSet, 'has'>
  readonly #index: RecordIndex
  readonly #states = new InodeStateTable()
  readonly #batches: PositionedLogBatch[] = []
  readonly #cache = new Map<number, LoadedRecordBatch>()
  #total = 0
  #isPruned = false

  /**
   * Reads the whole log.
   * @param acls the existing ACL numbers
   * @throws {RangeError} if the log is damaged
   */
  constructor(log: RecordLog, acls: Pick<NumberSet, 'has'>) {
    this.#log = log
    this.#acls = acls
    this.#index = new RecordIndex(log.size() / TYPICAL_RECORD_BYTES)
    for (const batch of log.readAll()) {
      this.add(batch)
      freeBuffer(batch.records)
    }
  }

  /** Number of inodes with a record. */
  get size(): number {
    return this.#index.size
  }

  /** Adds a batch that was appended to the log. */
  add({ number, sum, records }: RecordBatch): void {
    this.#batches.push({ number, sum, start: this.#total })
    const bytes = createDataView(records)
    const starts = findRecordStarts(bytes)
    for (let index = 0; index < starts.length; index++) {
      const at = starts[index] as number
      if (isForgottenInodeRecord(bytes, at)) this.#index.remove(bytes, at + RECORD_KEY_OFFSET)
      else this.#addRecord(bytes, at)
      this.#total++
    }
  }

  #addRecord(bytes: DataView, at: number): void {
    const entry = this.#index.add(bytes, at + RECORD_KEY_OFFSET, this.#total)
    const isAll = isPlainInodeRecord(bytes, at)
    if (!isAll) this.#assertAclsPresent(bytes, at)
    this.#index.setState(entry, isAll ? this.#assignState(entry, bytes, at) : NO_STATE_ID)
  }

  #assertAclsPresent(bytes: DataView, at: number): void {
    const isThere = (number: number) => number === NO_ACL_NUMBER || this.#acls.has(number)
    if (!readRecordAclNumbers({ chunk: bytes, at }).every(isThere)) throw new RangeError('an ACL is missing')
  }

  #assignState(entry: number, bytes: DataView, at: number): number {
    const isFirst = this.#index.getFirst(entry) === this.#total
    // Only the first record has the original state.
    const before = isFirst ? readOriginalOwnership(bytes, at) : this.#states.get(this.#index.getState(entry))?.before
    return before === undefined ? NO_STATE_ID : this.#states.assignId(before, readTargetOwnership(bytes, at))
  }

  /** Returns the entry of an inode that has a record. @param bytes and `at`: inode and birth time, 16 bytes */
  findEntry(bytes: DataView, at: number): number | undefined {
    return this.#index.find(bytes, at)
  }

  /** Returns the number of the batch with the latest record. */
  findBatch(entry: number): bigint {
    return (this.#batches[this.#findBatchIndex(this.#index.getLast(entry))] as PositionedLogBatch).number
  }

  /** Returns the states without reading records; undefined if the records say more. */
  getStates(entry: number): RecordedInodeStates | undefined {
    return this.#states.get(this.#index.getState(entry))
  }

  /** @param bytes and `at`: inode and birth time, 16 bytes */
  find(bytes: DataView, at: number): LocatedRecord | undefined {
    const entry = this.#index.find(bytes, at)
    return entry === undefined ? undefined : this.#readEntry(entry)
  }

  /** @param bytes inode and birth time */
  markVisited(bytes: DataView): void {
    this.#index.markVisited(bytes, 0)
  }

  /** Returns inode and birth time in turn of the inodes that no walk visited since the log was read. */
  listUnvisited(): BigInt64Array {
    const unvisited = this.#index.listUnvisited()
    this.#isPruned ||= unvisited.length > 0 || this.#total > this.size
    return unvisited
  }

  /** The log has far more records than inodes. */
  get #isSparse(): boolean {
    return this.size === 0 || this.#isPruned || (this.#total > MIN_RECORDS_TO_COMPACT && this.#total > 2 * this.size)
  }

  /** Applies a batch that the log will have. @param keys inode and birth time of each in turn */
  forget(keys: BigInt64Array): void {
    const bytes = new DataView(keys.buffer, keys.byteOffset, keys.byteLength)
    for (let at = 0; at < bytes.byteLength; at += 16) this.#index.remove(bytes, at)
  }

  /** Yields the records whose latest version is in the batch. */
  *readLatest(number: bigint): Generator<LocatedRecord> {
    const batch = this.#batches.findIndex((known) => known.number === number)
    if (batch >= 0) yield* this.#iterateLatest(batch)
  }

  *#iterateLatest(batch: number): Generator<LocatedRecord> {
    const { records, starts } = this.#loadBatch(batch)
    const { start } = this.#batches[batch] as PositionedLogBatch
    for (const [index, at] of starts.entries()) {
      const entry = this.#index.find(records, at + RECORD_KEY_OFFSET)
      if (entry !== undefined && this.#index.getLast(entry) === start + index) yield this.#readEntry(entry)
    }
  }

  /**
   * Rewrites a log that has grown far beyond its live records, within a transaction.
   * @param isUnsettled records of unsettled batches stay together
   * @param used gets the numbers of the ACLs still in use
   * @param rewrite changes each record; the log is then rewritten even if it has not grown
   * @returns the numbers of the new unsettled batches; undefined: nothing was done
   */
  compact(
    isUnsettled: (batch: bigint) => boolean,
    used: NumberSet,
    rewrite?: (record: EncodedRecord) => EncodedRecord,
  ): bigint[] | undefined {
    const last = this.#batches.at(-1)
    if (last === undefined || (!rewrite && !this.#isSparse)) return undefined
    const unsettled: bigint[] = []
    let before: bigint | undefined
    for (const wanted of [false, true]) {
      for (const records of this.#chunkRecords((batch) => isUnsettled(batch) === wanted, used, rewrite)) {
        const { number, sum } = this.#log.append(records, before)
        if (wanted) unsettled.push(number)
        before = sum
      }
    }
    this.#log.removeUpTo(last.number)
    return unsettled
  }

  *#chunkRecords(
    isWanted: (batch: bigint) => boolean,
    used: NumberSet,
    rewrite: (record: EncodedRecord) => EncodedRecord = (record) => record,
  ): Generator<Uint8Array> {
    // An empty log needs no reading.
    if (this.size === 0) return
    const chunk: EncodedRecord[] = []
    for (const [index, { number }] of this.#batches.entries()) {
      if (!isWanted(number)) continue
      for (const latest of this.#iterateLatest(index)) {
        const record = rewrite(latest)
        for (const acl of readRecordAclNumbers(record)) used.add(acl)
        if (chunk.push(record) === RECORDS_PER_BATCH) yield joinEncodedRecords(chunk.splice(0))
      }
    }
    if (chunk.length > 0) yield joinEncodedRecords(chunk)
  }

  #readEntry(entry: number): LocatedRecord {
    const [first, last] = [this.#index.getFirst(entry), this.#index.getLast(entry)]
    const batch = this.#findBatchIndex(last)
    const record = this.#readRecord(batch, last)
    const { chunk, at } =
      first === last ? record : composeRecordFromParts(this.#readRecord(this.#findBatchIndex(first), first), record)
    return { chunk, at, batch: (this.#batches[batch] as PositionedLogBatch).number }
  }

  #readRecord(batch: number, place: number): EncodedRecord {
    const { records, starts } = this.#loadBatch(batch)
    return { chunk: records, at: starts[place - (this.#batches[batch] as PositionedLogBatch).start] as number }
  }

  /** Returns the index of the batch that has the record at this position. */
  #findBatchIndex(place: number): number {
    let [low, high] = [0, this.#batches.length - 1]
    while (low < high) {
      const middle = (low + high + 1) >> 1
      if ((this.#batches[middle] as PositionedLogBatch).start <= place) low = middle
      else high = middle - 1
    }
    return low
  }

  #loadBatch(batch: number): LoadedRecordBatch {
    const cached = this.#cache.get(batch)
    if (cached !== undefined) return cached
    const records = createDataView(
      this.#log.read((this.#batches[batch] as PositionedLogBatch).number, this.#batches[batch - 1]?.sum),
    )
    const loaded = { records, starts: findRecordStarts(records) }
    const [oldest] = this.#cache.keys()
    if (oldest !== undefined && this.#cache.size === MAX_CACHED_BATCHES) this.#cache.delete(oldest)
    this.#cache.set(batch, loaded)
    return loaded
  }
}
