import type { Host } from '../../host/host.ts'
import type { InodeRecord } from '../inode/record.ts'
import type { About } from './checks.ts'
import type { Encoded } from './codec.ts'
import { isLargeFor, RESTORE } from './compaction.ts'
import { JournalFile, type Written } from './journal-file.ts'
import type { Records } from './records.ts'
import { ReleaseQueue } from './release-queue.ts'
import type { Quota } from './room.ts'
import type { States } from './state-table.ts'
import { type Batch, release } from './tables.ts'
import { UnderWay } from './under-way.ts'

const NONE = new Uint8Array()

type Found = Encoded & { settled: boolean; underWay: boolean }

/**
 * What a volume's inodes were before modekeep changed them, and what it made of them: one SQLite database, outside the
 * volume (a pod could forge it inside). What `append` has returned from is on disk before anything is changed.
 */
export class Journal {
  readonly #file: JournalFile
  /** Undefined until somebody looks for a record: a first walk only ever appends. */
  #records: Records | undefined
  #unsettled: Set<bigint>
  /** Those of the unsettled batches that this process is about to make. */
  readonly #own = new UnderWay()
  readonly #queue = new ReleaseQueue((written) => this.#write(written))

  /**
   * Makes a journal where there is none.
   * @param known and `disk`: as of `About`
   * @throws {Refusal} when the file is damaged, foreign, another volume's or of another format: ownership must stop
   */
  static open(host: Host, path: string, volume: string, known = false, disk?: string): Journal {
    return new Journal(host, { path, volume, known, reading: false, disk })
  }

  /** Nothing is written to the file, by whatever is called; a walk may be writing to it meanwhile. @throws as `open` */
  static openForReading(host: Host, path: string, volume: string, known = false): Journal {
    return new Journal(host, { path, volume, known, reading: true })
  }

  private constructor(host: Host, about: About) {
    this.#file = new JournalFile(host, about)
    this.#unsettled = this.#file.unsettled
  }

  /**
   * @param keys inode and birth time of each in turn
   * @returns of each the record, for `decode`; `underWay`: its change is this process's, and not made yet
   */
  find(keys: BigInt64Array): (Found | undefined)[] {
    return this.#each(keys, (bytes, at) => this.#at(bytes, at))
  }

  /** @param record that was found, or was put together of one; `settled`: see InodeRecord */
  decode(record: Encoded, settled: boolean): InodeRecord {
    return this.#file.decode(record, settled)
  }

  /**
   * `find` for inodes of which most have no more than a group and permission bits, without reading their records.
   * @returns `other`: it has a record that says more, or whose change may not have been made
   */
  statesOf(keys: BigInt64Array): (States | 'wait' | 'other' | undefined)[] {
    return this.#each(keys, (bytes, at) => {
      const entry = this.#read().entryOf(bytes, at)
      return entry === undefined ? undefined : this.#statesIn(entry)
    })
  }

  #each<T>(keys: BigInt64Array, of: (bytes: DataView, at: number) => T): T[] {
    const bytes = new DataView(keys.buffer, keys.byteOffset, keys.byteLength)
    return this.#file.guard(() => {
      const found: T[] = []
      for (let at = 0; at < bytes.byteLength; at += 16) found.push(of(bytes, at))
      return found
    })
  }

  #statesIn(entry: number): States | 'wait' | 'other' {
    const batch = this.#read().batchIn(entry)
    if (this.#unsettled.has(batch)) return this.#own.has(batch) ? 'wait' : 'other'
    return this.#read().statesIn(entry) ?? 'other'
  }

  #at(bytes: DataView, at: number): Found | undefined {
    const found = this.#read().find(bytes, at)
    return found && { ...found, settled: !this.#unsettled.has(found.batch), underWay: this.#own.has(found.batch) }
  }

  /** Records of changes that a process began and may not have finished: those of its last batches. */
  unfinished(): InodeRecord[] {
    return this.#file.guard(() =>
      [...this.#unsettled].flatMap((batch) =>
        [...this.#read().latestOf(batch)].map((record) => this.decode(record, false)),
      ),
    )
  }

  /**
   * Notes on disk that inodes are being put back, until the next walk has ended. From then on one that is what it was at
   * first is no decision of its user's.
   */
  beginRestore(): void {
    if (this.#unsettled.has(RESTORE)) return
    this.#file.noteRestore()
    this.#unsettled.add(RESTORE)
  }

  /** A restore was begun, and no walk has ended since. */
  get hasRestoreBegun(): boolean {
    return this.#unsettled.has(RESTORE)
  }

  /** A process may not have made each change that it recorded. That a restore has begun is no change. */
  get hasUnfinished(): boolean {
    return this.#unsettled.size > Number(this.hasRestoreBegun)
  }

  /** What the volume lay on when that was last noted. */
  get disk(): string | undefined {
    return this.#file.disk
  }

  /** Nothing was ever recorded, or all of it was put back. */
  isNew(): boolean {
    return this.#file.isEmpty()
  }

  isEmpty(): boolean {
    return this.#file.isEmpty() || this.#read().size === 0
  }

  /**
   * Makes a batch of records durable, with one commit. Call it before the changes.
   * @param plain records without an ACL, encoded; they come before the others
   * @returns the batch's number, for `settle`
   */
  append(records: readonly InodeRecord[], plain: Uint8Array = NONE): bigint {
    if (this.#queue.mayHave(() => this.#read(), records, plain)) this.#queue.release()
    const batch = { plain, records }
    const own = this.#write({ settled: [], forgotten: [], batch }) as Batch
    this.#unsettled.add(own.number)
    this.#own.add(own.number, own.records)
    return own.number
  }

  /** @param syncVolume makes the volume's changes durable: it is called before what describes them is dropped */
  syncBy(syncVolume: () => void): void {
    this.#queue.syncVolume = syncVolume
  }

  /** All changes of the batch have been made. On disk once the volume is synced: until then it counts as unsettled. */
  settle(batch: bigint): void {
    this.#queue.settle(batch)
    this.#unsettled.delete(batch)
    this.#own.delete(batch)
    if (this.#queue.isFull) this.#queue.release()
  }

  /**
   * Nothing that was appended by this process is still to be made.
   * @param hasMetAll the walk has met all inodes: that a restore has begun need not be known any more
   */
  confirm(hasMetAll = true): void {
    // A batch of a crashed process is settled when each of its inodes has been recorded or forgotten since.
    const isDone = (batch: bigint) => this.#read().latestOf(batch).next().done && (batch !== RESTORE || hasMetAll)
    const done = this.#file.guard(() => [...this.#unsettled].filter(isDone))
    for (const batch of done) this.settle(batch)
    this.#queue.release()
    if (this.#records) this.#readAnew(this.#file.compact(this.#records, this.#unsettled))
  }

  /** Makes the present states the baseline that restoreOnUnmount returns to: all of them or none. Call it between walks. */
  setBaseline(): void {
    this.#queue.release()
    this.#readAnew(this.#file.setBaseline(this.#read(), this.#unsettled))
  }

  #readAnew(unsettled: Set<bigint> | undefined): void {
    if (unsettled === undefined) return
    this.#unsettled = unsettled
    this.#records = undefined
  }

  /** Beyond it nothing is recorded any more. @param quota undefined: without a limit */
  limitTo(quota: Quota | undefined): void {
    this.#file.limitTo(quota)
  }

  /** Whether what is recorded takes more than so many bytes. */
  isLargerThan(bytes: number): boolean {
    return this.#file.size() > bytes
  }

  /**
   * Whether there is far more on record than a volume of so many inodes needs, or a change that a process may not have
   * made and nobody can finish: what is gone is to be forgotten.
   */
  isOvergrown(inodes: number): boolean {
    return this.hasUnfinished || isLargeFor(this.#file.size(), inodes)
  }

  /** An inode is there. @param key inode and birth time */
  meet(key: DataView): void {
    this.#file.guard(() => this.#read().meet(key))
  }

  /** Forgets every inode that was not met since the journal was opened. Death leaves some of them. */
  forgetUnmet(): void {
    this.forget(this.#read().unmet())
    this.confirm(false)
  }

  /**
   * Nothing is left to put back, unless a batch that is to be made has the inode too: it may be met twice. On disk once
   * the volume is synced, as what is settled: until then it costs a look.
   * @param keys inode and birth time of each in turn
   */
  forget(keys: BigInt64Array): void {
    const rest = this.#own.others(keys)
    this.#queue.forget(rest)
    this.#records?.forget(rest)
    if (this.#queue.isFull) this.#queue.release()
  }

  close = (): void => this.#file.close();

  [Symbol.dispose] = this.close

  #read(): Records {
    if (this.#records === undefined) {
      this.#records = this.#file.records()
      for (const keys of this.#queue.forgotten) this.#records.forget(keys)
    }
    return this.#records
  }

  #write(written: Written): Batch | undefined {
    const { batches, own } = this.#file.write(written)
    for (const batch of batches) {
      this.#records?.add(batch)
      if (batch !== own) release(batch.records)
    }
    return own
  }
}
