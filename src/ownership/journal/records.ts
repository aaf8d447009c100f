import { aclsIn, compose, type Encoded, isForgotten, join, startsOf, viewOf } from './codec.ts'
import { FIRST, HEADER, KEY, LAST, NO_NUMBER } from './layout.ts'
import type { NumberSet } from './number-set.ts'
import { afterOf, beforeOf, isPlain } from './plain-record.ts'
import { RecordIndex } from './record-index.ts'
import { NO_STATES, type States, StateTable } from './state-table.ts'
import { type Batch, type Log, release } from './tables.ts'

// Walks go through a tree in the same order each time.
const MOST_CACHED = 4
/** Of a record with a path of few letters: an index for too many takes less than one that has to grow. */
const RECORD_SIZE = HEADER + FIRST + LAST + 6
const WORTH_COMPACTING = 10_000
const BATCH_SIZE = 1000

/** A batch that was read, and the place of its first record among all. */
interface Known extends Omit<Batch, 'records'> {
  start: number
}

interface Loaded {
  records: DataView
  starts: Int32Array
}

/** One record, and the batch of its latest version. */
export interface Located extends Encoded {
  batch: bigint
}

/** The records of a log by inode. What an inode was when it was first recorded is never recorded again. */
export class Records {
  readonly #log: Log
  readonly #acls: Pick<NumberSet, 'has'>
  readonly #index: RecordIndex
  readonly #states = new StateTable()
  readonly #batches: Known[] = []
  readonly #cache = new Map<number, Loaded>()
  #total = 0
  #isPruned = false

  /** Reads all there is. @param acls the numbers of those there are @throws {RangeError} where it is damaged */
  constructor(log: Log, acls: Pick<NumberSet, 'has'>) {
    this.#log = log
    this.#acls = acls
    this.#index = new RecordIndex(log.size() / RECORD_SIZE)
    for (const batch of log.all()) {
      this.add(batch)
      release(batch.records)
    }
  }

  /** How many inodes have a record. */
  get size(): number {
    return this.#index.size
  }

  /** A batch that was appended to the log. */
  add({ number, sum, records }: Batch): void {
    this.#batches.push({ number, sum, start: this.#total })
    const bytes = viewOf(records)
    const starts = startsOf(bytes)
    for (let index = 0; index < starts.length; index++) {
      const at = starts[index] as number
      if (isForgotten(bytes, at)) this.#index.remove(bytes, at + KEY)
      else this.#addOne(bytes, at)
      this.#total++
    }
  }

  #addOne(bytes: DataView, at: number): void {
    const entry = this.#index.add(bytes, at + KEY, this.#total)
    const isAll = isPlain(bytes, at)
    if (!isAll) this.#findAcls(bytes, at)
    this.#index.setState(entry, isAll ? this.#stateOf(entry, bytes, at) : NO_STATES)
  }

  #findAcls(bytes: DataView, at: number): void {
    const isThere = (number: number) => number === NO_NUMBER || this.#acls.has(number)
    if (!aclsIn({ chunk: bytes, at }).every(isThere)) throw new RangeError('an ACL is missing')
  }

  #stateOf(entry: number, bytes: DataView, at: number): number {
    const isFirst = this.#index.firstIn(entry) === this.#total
    // What it was is told by its first record alone.
    const before = isFirst ? beforeOf(bytes, at) : this.#states.get(this.#index.stateIn(entry))?.before
    return before === undefined ? NO_STATES : this.#states.idOf(before, afterOf(bytes, at))
  }

  /**
   * The entry of an inode that has a record.
   * @param bytes and `at`: where inode and birth time lie, 16 bytes
   */
  entryOf(bytes: DataView, at: number): number | undefined {
    return this.#index.find(bytes, at)
  }

  /** The batch of its latest record. */
  batchIn(entry: number): bigint {
    return (this.#batches[this.#batchOf(this.#index.lastIn(entry))] as Known).number
  }

  /** What is known of it without reading its records, where that is all that they say. */
  statesIn(entry: number): States | undefined {
    return this.#states.get(this.#index.stateIn(entry))
  }

  /** @param bytes and `at`: where inode and birth time lie, 16 bytes */
  find(bytes: DataView, at: number): Located | undefined {
    const entry = this.#index.find(bytes, at)
    return entry === undefined ? undefined : this.#in(entry)
  }

  /** A walk has met an inode. @param bytes inode and birth time */
  meet(bytes: DataView): void {
    this.#index.meet(bytes, 0)
  }

  /** Inode and birth time in turn of those that no walk has met since the log was read: they are to be forgotten. */
  unmet(): BigInt64Array {
    const unmet = this.#index.unmet()
    this.#isPruned ||= unmet.length > 0 || this.#total > this.size
    return unmet
  }

  /** Far more was written than is left. */
  get #isSparse(): boolean {
    return this.size === 0 || this.#isPruned || (this.#total > WORTH_COMPACTING && this.#total > 2 * this.size)
  }

  /** What a batch of the log will say. @param keys inode and birth time of each in turn */
  forget(keys: BigInt64Array): void {
    const bytes = new DataView(keys.buffer, keys.byteOffset, keys.byteLength)
    for (let at = 0; at < bytes.byteLength; at += 16) this.#index.remove(bytes, at)
  }

  /** Those whose latest version is of that batch. */
  *latestOf(number: bigint): Generator<Located> {
    const batch = this.#batches.findIndex((known) => known.number === number)
    if (batch >= 0) yield* this.#latestIn(batch)
  }

  *#latestIn(batch: number): Generator<Located> {
    const { records, starts } = this.#load(batch)
    const { start } = this.#batches[batch] as Known
    for (const [index, at] of starts.entries()) {
      const entry = this.#index.find(records, at + KEY)
      if (entry !== undefined && this.#index.lastIn(entry) === start + index) yield this.#in(entry)
    }
  }

  /**
   * Writes what is left of a log that has grown by far more, within a transaction.
   * @param isUnsettled of a batch: its records stay together; `used` gets the numbers of the ACLs that are still needed
   * @param rewrite changes each record; then a log is written anew that has not grown, too
   * @returns the numbers of the new batches that are unsettled; undefined: nothing was done
   */
  compact(
    isUnsettled: (batch: bigint) => boolean,
    used: NumberSet,
    rewrite?: (record: Encoded) => Encoded,
  ): bigint[] | undefined {
    const last = this.#batches.at(-1)
    if (last === undefined || (!rewrite && !this.#isSparse)) return undefined
    const unsettled: bigint[] = []
    let before: bigint | undefined
    for (const wanted of [false, true]) {
      for (const records of this.#chunks((batch) => isUnsettled(batch) === wanted, used, rewrite)) {
        const { number, sum } = this.#log.append(records, before)
        if (wanted) unsettled.push(number)
        before = sum
      }
    }
    this.#log.removeTo(last.number)
    return unsettled
  }

  *#chunks(
    isWanted: (batch: bigint) => boolean,
    used: NumberSet,
    rewrite: (record: Encoded) => Encoded = (record) => record,
  ): Generator<Uint8Array> {
    // Of nothing, nothing is looked for.
    if (this.size === 0) return
    const chunk: Encoded[] = []
    for (const [index, { number }] of this.#batches.entries()) {
      if (!isWanted(number)) continue
      for (const latest of this.#latestIn(index)) {
        const record = rewrite(latest)
        for (const acl of aclsIn(record)) used.add(acl)
        if (chunk.push(record) === BATCH_SIZE) yield join(chunk.splice(0))
      }
    }
    if (chunk.length > 0) yield join(chunk)
  }

  #in(entry: number): Located {
    const [first, last] = [this.#index.firstIn(entry), this.#index.lastIn(entry)]
    const batch = this.#batchOf(last)
    const record = this.#record(batch, last)
    const { chunk, at } = first === last ? record : compose(this.#record(this.#batchOf(first), first), record)
    return { chunk, at, batch: (this.#batches[batch] as Known).number }
  }

  #record(batch: number, place: number): Encoded {
    const { records, starts } = this.#load(batch)
    return { chunk: records, at: starts[place - (this.#batches[batch] as Known).start] as number }
  }

  /** Which of the batches has the record of that place. */
  #batchOf(place: number): number {
    let [low, high] = [0, this.#batches.length - 1]
    while (low < high) {
      const middle = (low + high + 1) >> 1
      if ((this.#batches[middle] as Known).start <= place) low = middle
      else high = middle - 1
    }
    return low
  }

  #load(batch: number): Loaded {
    const cached = this.#cache.get(batch)
    if (cached !== undefined) return cached
    const records = viewOf(this.#log.read((this.#batches[batch] as Known).number, this.#batches[batch - 1]?.sum))
    const loaded = { records, starts: startsOf(records) }
    const [oldest] = this.#cache.keys()
    if (oldest !== undefined && this.#cache.size === MOST_CACHED) this.#cache.delete(oldest)
    this.#cache.set(batch, loaded)
    return loaded
  }
}
