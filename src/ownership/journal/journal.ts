import type { Host } from '../../kernel/host.ts'
import type { InodeRecord } from '../inode/record.ts'
import type { EncodedRecord } from './codec.ts'
import type { JournalOpenOptions } from './database.ts'
import { JournalFile, type JournalTransaction, RESTORE_BATCH_NUMBER } from './journal-file.ts'
import { isJournalLargerThanNeeded, type JournalQuota } from './quota.ts'
import { BatchesInProgress, type RecordedInodeStates } from './record-index.ts'
import type { IndexedRecordLog } from './records.ts'
import { BatchReleaseQueue } from './release-queue.ts'
import { freeBuffer, type RecordBatch } from './tables.ts'

export type NewJournalFacts = Pick<JournalOpenOptions, 'disk' | 'firstRecord'>

export type JournalRecord = EncodedRecord & { settled: boolean; isInProgress?: boolean }

/**
 * The recorded states of a volume's inodes before and after modekeep's changes.
 * The SQLite database is outside the volume, where a pod cannot forge it. Records are on disk before a change.
 */
export class Journal {
  readonly #file: JournalFile
  /** Undefined until a record is looked up, because a first walk only appends. */
  #records: IndexedRecordLog | undefined
  #unsettled: Set<bigint>
  /** The unsettled batches whose changes this process is about to make. */
  readonly #inProgress = new BatchesInProgress()
  readonly #queue = new BatchReleaseQueue((write) => this.#write(write))

  /**
   * Opens a journal, and creates it if it does not exist.
   * @param wasWalked, `disk` and `firstRecord`: see JournalOpenOptions
   * @throws {Refusal} if the file is damaged, foreign, another volume's or of another format; ownership must stop
   */
  static open(host: Host, path: string, volume: string, wasWalked = false, more: NewJournalFacts = {}): Journal {
    return new Journal(host, { path, volume, wasWalked, isReadOnly: false, ...more })
  }

  /** Opens a journal that a walk may write to concurrently. Nothing is written to the file. @throws as `open` */
  static openForReading(host: Host, path: string, volume: string, wasWalked = false): Journal {
    return new Journal(host, { path, volume, wasWalked, isReadOnly: true })
  }

  private constructor(host: Host, options: JournalOpenOptions) {
    this.#file = new JournalFile(host, options)
    this.#unsettled = this.#file.unsettled
  }

  /**
   * @param keys inode and birth time of each in turn
   * @returns the record of each, for `decode`; `isInProgress`: this process has yet to make its change
   */
  find(keys: BigInt64Array): (JournalRecord | undefined)[] {
    return this.#mapKeys(keys, (bytes, at) => this.#findRecord(bytes, at))
  }

  /** @param record from `find`, or composed of one; `settled`: see InodeRecord */
  decode(record: EncodedRecord, settled: boolean): InodeRecord {
    return this.#file.decode(record, settled)
  }

  /**
   * Like `find`, without reading records: most inodes have only a group and permission bits.
   * @returns 'other' if the record says more, or its change may not have been made
   */
  findStates(keys: BigInt64Array): (RecordedInodeStates | 'wait' | 'other' | undefined)[] {
    return this.#mapKeys(keys, (bytes, at) => {
      const entry = this.#loadRecords().findEntry(bytes, at)
      return entry === undefined ? undefined : this.#readStates(entry)
    })
  }

  #mapKeys<T>(keys: BigInt64Array, convert: (bytes: DataView, at: number) => T): T[] {
    const bytes = new DataView(keys.buffer, keys.byteOffset, keys.byteLength)
    return this.#file.guard(() => {
      const found: T[] = []
      for (let at = 0; at < bytes.byteLength; at += 16) found.push(convert(bytes, at))
      return found
    })
  }

  #readStates(entry: number): RecordedInodeStates | 'wait' | 'other' {
    const batch = this.#loadRecords().findBatch(entry)
    if (this.#unsettled.has(batch)) return this.#inProgress.has(batch) ? 'wait' : 'other'
    return this.#loadRecords().getStates(entry) ?? 'other'
  }

  #findRecord(bytes: DataView, at: number): JournalRecord | undefined {
    const record = this.#loadRecords().find(bytes, at)
    if (record === undefined) return undefined
    const { batch } = record
    return { ...record, settled: !this.#unsettled.has(batch), isInProgress: this.#inProgress.has(batch) }
  }

  /** Returns the records of changes that a process began and may not have finished: those of its last batches. */
  readUnfinished(): InodeRecord[] {
    const readBatch = (batch: bigint) =>
      [...this.#loadRecords().readLatest(batch)].map((record) => this.decode(record, false))
    return this.#file.guard(() => [...this.#unsettled].flatMap(readBatch))
  }

  /**
   * Records on disk that a restore has begun; the next completed walk ends it. Until then, an inode in its first state
   * was not changed by its user.
   */
  beginRestore(): void {
    if (this.#unsettled.has(RESTORE_BATCH_NUMBER)) return
    this.#file.recordRestore()
    this.#unsettled.add(RESTORE_BATCH_NUMBER)
  }

  /** A restore was begun, and no walk was completed since. */
  get hasRestoreBegun(): boolean {
    return this.#unsettled.has(RESTORE_BATCH_NUMBER)
  }

  /** A process may not have made every change that it recorded. The mark of a restore is not a change. */
  get hasUnfinished(): boolean {
    return this.#unsettled.size > Number(this.hasRestoreBegun)
  }

  /** The last recorded disk of the volume. */
  get disk(): string | undefined {
    return this.#file.disk
  }

  /** Returns whether nothing was ever recorded, or everything was restored. */
  isNew(): boolean {
    return this.#file.isEmpty()
  }

  isEmpty(): boolean {
    return this.#file.isEmpty() || this.#loadRecords().size === 0
  }

  /**
   * Makes a batch of records durable with one commit. Call it before the changes.
   * @param plain encoded records without an ACL; they come first
   * @returns the batch's number, for `settle`
   */
  append(records: readonly InodeRecord[], plain: Uint8Array = new Uint8Array()): bigint {
    if (this.#queue.mayHaveForgotten(() => this.#loadRecords(), records, plain)) this.#queue.release()
    const batch = { plain, records }
    const own = this.#write({ settled: [], forgotten: [], batch }) as RecordBatch
    this.#unsettled.add(own.number)
    this.#inProgress.add(own.number, own.records)
    return own.number
  }

  /** @param syncVolume makes the volume's changes durable; it runs before their records are dropped */
  setVolumeSync(syncVolume: () => void): void {
    this.#queue.syncVolume = syncVolume
  }

  /** Marks all changes of the batch as made. On disk the batch stays unsettled until the volume is synced. */
  settle(batch: bigint): void {
    this.#queue.settle(batch)
    this.#unsettled.delete(batch)
    this.#inProgress.delete(batch)
    if (this.#queue.isFull) this.#queue.release()
  }

  /**
   * Marks all changes of this process as made.
   * @param hasVisitedAllInodes the walk visited every inode, so a restore's mark can be dropped
   */
  confirm(hasVisitedAllInodes = true): void {
    // A crashed process's batch is settled once each of its inodes has been recorded again or forgotten.
    const isEmpty = (batch: bigint) => this.#loadRecords().readLatest(batch).next().done
    const isDone = (batch: bigint) => isEmpty(batch) && (batch !== RESTORE_BATCH_NUMBER || hasVisitedAllInodes)
    const done = this.#file.guard(() => [...this.#unsettled].filter(isDone))
    for (const batch of done) this.settle(batch)
    this.#queue.release()
    if (this.#records) this.#reload(this.#file.compact(this.#records, this.#unsettled))
  }

  /** Makes the present states the baseline that restoreOnUnmount returns to, all or none. Call it between walks. */
  setBaseline(): void {
    this.#queue.release()
    this.#reload(this.#file.setBaseline(this.#loadRecords(), this.#unsettled))
  }

  #reload(unsettled: Set<bigint> | undefined): void {
    if (unsettled === undefined) return
    this.#unsettled = unsettled
    this.#records = undefined
  }

  /** Records beyond the quota are refused. @param quota undefined: no limit */
  setQuota(quota: JournalQuota | undefined): void {
    this.#file.setQuota(quota)
  }

  isLargerThan(bytes: number): boolean {
    return this.#file.measureSize() > bytes
  }

  /**
   * Returns whether the journal has far more records than so many inodes need, or an unfinished change that no walk can
   * complete. Records of deleted inodes must then be forgotten.
   */
  isOvergrown(inodes: number): boolean {
    return this.hasUnfinished || isJournalLargerThanNeeded(this.#file.measureSize(), inodes)
  }

  /** @param key inode and birth time */
  markVisited(key: DataView): void {
    this.#file.guard(() => this.#loadRecords().markVisited(key))
  }

  /** Forgets the inodes that were not visited since the journal was opened. A crash leaves some of their records. */
  forgetUnvisited(): void {
    this.forget(this.#loadRecords().listUnvisited())
    this.confirm(false)
  }

  /**
   * Forgets inodes that have nothing left to restore, except those in a batch in progress, because a walk can meet an
   * inode twice. It is written after the volume is synced; until then these inodes are checked again.
   * @param keys inode and birth time of each in turn
   */
  forget(keys: BigInt64Array): void {
    const rest = this.#inProgress.excludeKeys(keys)
    this.#queue.forget(rest)
    this.#records?.forget(rest)
    if (this.#queue.isFull) this.#queue.release()
  }

  close = (): void => this.#file.close();

  [Symbol.dispose] = this.close

  #loadRecords(): IndexedRecordLog {
    if (this.#records === undefined) {
      this.#records = this.#file.readRecords()
      for (const keys of this.#queue.forgotten) this.#records.forget(keys)
    }
    return this.#records
  }

  #write(write: JournalTransaction): RecordBatch | undefined {
    const { batches, own } = this.#file.write(write)
    for (const batch of batches) {
      this.#records?.add(batch)
      if (batch !== own) freeBuffer(batch.records)
    }
    return own
  }
}
