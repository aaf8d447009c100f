import type { Host } from '../../host/host.ts'
import type { Refusal } from '../../refusal/refusal.ts'
import type { InodeRecord } from '../inode/record.ts'
import { Seals } from './checksums.ts'
import { decode, type Encoded, encode } from './codec.ts'
import { Database } from './database.ts'
import { foldCopy, foldLog } from './fold.ts'
import { damaged, guarded } from './journal-error.ts'
import { FORMAT, OWN_END, OWN_NOTHING, PRUNE, SCHEMA, SEAL, SETTINGS, signed, UNSEALED } from './schema.ts'

/**
 * What a volume's inodes were before modekeep changed them, and what it made of them: one SQLite database, outside the
 * volume (a pod could forge it inside). What `append` has returned from is on disk before anything is changed.
 */
export class Journal {
  readonly #database: Database
  readonly #where: string
  readonly #reading: boolean
  readonly #seals: Seals
  #unsettled = new Set<bigint>()
  /** Those of the unsettled batches that this process is about to make. */
  readonly #own = new Set<bigint>()
  /** Settled, but not on disk yet: that can wait for the next transaction. */
  #settled: bigint[] = []
  #isFolded = false

  /**
   * @param known the volume was walked before, so that its journal cannot be missing or empty
   * @param reading nothing is written to the file, by whatever is called; a walk may be writing to it meanwhile
   * @throws {Refusal} when the file is damaged, foreign or another volume's: ownership must stop then
   */
  constructor(host: Host, path: string, volume: string, known = false, reading = false) {
    this.#where = path
    this.#reading = reading
    this.#seals = new Seals(volume)
    this.#database = this.#guard(() => new Database(host.openDatabase(path)))
    try {
      this.#guard(() => this.#claim(volume, known))
    } catch (error) {
      this.#database.close()
      throw error
    }
  }

  /** Nothing is written before the file is known to be this volume's. */
  #claim(volume: string, known: boolean): void {
    const exists = this.#database.get("SELECT 1 FROM sqlite_master WHERE name = 'journal'") !== undefined
    const row = exists ? this.#database.get('SELECT * FROM journal') : undefined
    if (row === undefined && known) throw this.#damaged('it is empty, although the volume was walked before')
    if (row && row.format !== BigInt(FORMAT) && row.format !== BigInt(UNSEALED))
      throw this.#damaged(`its format is ${row.format}, this version reads ${FORMAT}`)
    if (row && row.volume !== volume) throw this.#damaged(`it belongs to volume ${row.volume}`)
    if (!this.#reading) this.#database.make(SETTINGS, row?.format === BigInt(UNSEALED) ? SEAL : SCHEMA)
    else if (!exists) this.#database.exec(OWN_NOTHING)
    this.#isFolded = this.#reading && !exists
    if (!row && !this.#reading) this.#database.run('INSERT INTO journal VALUES (?, ?)', FORMAT, volume)
    this.#unsettled = new Set(this.#database.all('SELECT batch FROM unsettled').map(({ batch }) => batch as bigint))
  }

  find(inode: bigint, born: bigint): InodeRecord | undefined {
    const found = this.findEncoded(inode, born)
    return found && this.#guard(() => decode(found, found.settled))
  }

  /** The same as it lies in the journal, for another thread. */
  findEncoded(inode: bigint, born: bigint): (Encoded & { settled: boolean; underWay: boolean }) | undefined {
    this.#fold()
    return this.#guard(() => {
      const row = this.#database.get('SELECT * FROM inodes WHERE inode = ? AND born = ?', signed(inode), born)
      if (row === undefined) return undefined
      const { batch, ...record } = this.#seals.record(row)
      return { ...record, settled: !this.#unsettled.has(batch), underWay: this.#own.has(batch) }
    })
  }

  /** Records of changes that a process began and may not have finished: those of its last batches. */
  unfinished(): InodeRecord[] {
    if (this.#unsettled.size === 0) return []
    this.#fold()
    return this.#guard(() =>
      this.#database
        .all('SELECT * FROM inodes WHERE batch IN (SELECT batch FROM unsettled)')
        .map((row) => this.#seals.record(row))
        .map((record) => decode(record, !this.#unsettled.has(record.batch))),
    )
  }

  isEmpty(): boolean {
    return this.#guard(() => {
      const any = 'SELECT 1 FROM log UNION ALL SELECT 1 FROM inodes LIMIT 1'
      return this.#database.get(any) === undefined
    })
  }

  /**
   * Makes a batch of records durable. Call it before the changes.
   * @returns the batch's number, for `settle`
   */
  append(records: readonly InodeRecord[]): bigint {
    return this.appendAll([encode(records)])[0] ?? 0n
  }

  /** The same for several batches of encoded records, with one commit. */
  appendAll(chunks: readonly Uint8Array[]): bigint[] {
    const batches: bigint[] = []
    this.#transaction(() => {
      for (const chunk of chunks) {
        const batch = this.#database.run('INSERT INTO unsettled DEFAULT VALUES')
        this.#unsettled.add(batch)
        this.#own.add(batch)
        batches.push(batch)
        if (chunk.length > 0)
          this.#database.run('INSERT INTO log VALUES (?, ?, ?)', batch, chunk, this.#seals.ofChunk(batch, chunk))
      }
    })
    this.#isFolded = false
    return batches
  }

  /** All changes of the batch have been made. On disk with the next transaction: until then it counts as unsettled. */
  settle(batch: bigint): void {
    this.#settled.push(batch)
    this.#unsettled.delete(batch)
    this.#own.delete(batch)
  }

  /** Nothing that was appended by this process is still to be made. */
  confirm(): void {
    // A batch of a process that died is settled when each of its inodes has been recorded or forgotten since.
    if (this.#unsettled.size > 0) this.#fold()
    this.#transaction(() => {
      if (this.#unsettled.size > 0) this.#database.exec(PRUNE)
    })
  }

  /** Restored: nothing is left to put back. */
  forget(keys: readonly Pick<InodeRecord, 'inode' | 'born'>[]): void {
    this.#fold()
    this.#transaction(() => {
      const remove = 'DELETE FROM inodes WHERE inode = ? AND born = ?'
      for (const { inode, born } of keys) this.#database.run(remove, signed(inode), born)
    })
  }

  /**
   * A record whose inode number was damaged is found by nobody, so what is left after a restore is looked at.
   * @throws {Refusal}
   */
  checkRest(): void {
    this.#guard(() => {
      for (const row of this.#database.each('SELECT * FROM inodes')) this.#seals.record(row)
    })
  }

  close(): void {
    if (this.#reading) this.#database.exec(OWN_END)
    this.#database.close()
  }

  /** Moves the log's records to where they can be found, one batch at a time. What a crash undoes of it, the log still has. */
  #fold(): void {
    if (this.#isFolded) return
    this.#guard(() => (this.#reading ? foldCopy : foldLog)(this.#database, this.#seals))
    this.#isFolded = true
  }

  #transaction(work: () => void): void {
    this.#guard(() =>
      this.#database.transaction(() => {
        for (const batch of this.#settled) this.#database.run('DELETE FROM unsettled WHERE batch = ?', batch)
        work()
        this.#settled = []
      }),
    )
  }

  #guard<T>(work: () => T): T {
    return guarded(this.#where, work)
  }

  #damaged(reason: string): Refusal {
    return damaged(this.#where, reason)
  }
}
