import { errorCode, type Host } from '../host/host.ts'
import { Refusal } from '../protocol/refusal.ts'
import { decode, type Encoded, encode, split } from './codec.ts'
import { Database } from './database.ts'
import { FOLD, FORMAT, isCorrupt, OWN_INODES, PRUNE, SCHEMA, signed } from './journal-schema.ts'
import type { InodeRecord } from './record.ts'

/**
 * What a volume's inodes were before modekeep changed them, and what it made of them: one SQLite database, outside the
 * volume (a pod could forge it inside). What `append` has returned from is on disk before anything is changed.
 */
export class Journal {
  readonly #database: Database
  readonly #where: string
  readonly #reading: boolean
  #unsettled = new Set<bigint>()
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
    if (row && row.format !== BigInt(FORMAT))
      throw this.#damaged(`its format is ${row.format}, this version reads ${FORMAT}`)
    if (row && row.volume !== volume) throw this.#damaged(`it belongs to volume ${row.volume}`)
    if (!this.#reading) this.#database.exec(SCHEMA)
    if (!row && !this.#reading) this.#database.run('INSERT INTO journal VALUES (?, ?)', FORMAT, volume)
    this.#unsettled = new Set(this.#database.all('SELECT batch FROM unsettled').map(({ batch }) => batch as bigint))
  }

  find(inode: bigint, born: bigint): InodeRecord | undefined {
    const found = this.findEncoded(inode, born)
    return found && this.#guard(() => decode(found, found.settled))
  }

  /** The same as it lies in the journal, for another thread. */
  findEncoded(inode: bigint, born: bigint): (Encoded & { settled: boolean }) | undefined {
    this.#fold()
    return this.#guard(() => {
      const row = this.#database.get('SELECT * FROM inodes WHERE inode = ? AND born = ?', signed(inode), born)
      if (row === undefined) return undefined
      return { ...(row as unknown as Encoded), settled: !this.#unsettled.has(row.batch as bigint) }
    })
  }

  /** Records of changes that a process began and may not have finished: those of its last batches. */
  unfinished(): InodeRecord[] {
    if (this.#unsettled.size === 0) return []
    this.#fold()
    return this.#guard(() =>
      this.#database
        .all('SELECT * FROM inodes WHERE batch IN (SELECT batch FROM unsettled)')
        .map((row) => decode(row as unknown as Encoded, !this.#unsettled.has(row.batch as bigint))),
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
        batches.push(batch)
        if (chunk.length > 0) this.#database.run('INSERT INTO log VALUES (?, ?)', batch, chunk)
      }
    })
    this.#isFolded = false
    return batches
  }

  /** All changes of the batch have been made. On disk with the next transaction: until then it counts as unsettled. */
  settle(batch: bigint): void {
    this.#settled.push(batch)
    this.#unsettled.delete(batch)
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

  close(): void {
    this.#database.close()
  }

  /** Moves the log's records to where they can be found, one batch at a time. What a crash undoes of it, the log still has. */
  #fold(): void {
    if (this.#isFolded) return
    this.#guard(() => (this.#reading ? this.#copy() : this.#moveAll()))
    this.#isFolded = true
  }

  #moveAll(): void {
    for (let more = true; more; ) {
      this.#database.relaxed(() => {
        const row = this.#database.get('SELECT batch, records FROM log ORDER BY batch LIMIT 1')
        more = row !== undefined
        if (row) this.#put(row)
        if (row) this.#database.run('DELETE FROM log WHERE batch = ?', row.batch as bigint)
      })
    }
  }

  /** A table of one's own under the same name hides the file's. */
  #copy(): void {
    this.#database.exec(OWN_INODES)
    for (const { batch } of this.#database.all('SELECT batch FROM log ORDER BY batch')) {
      const row = this.#database.get('SELECT batch, records FROM log WHERE batch = ?', batch as bigint)
      if (row) this.#put(row)
    }
  }

  #put({ batch, records }: Record<string, unknown>): void {
    for (const { inode, born, first, last } of split(records as Uint8Array)) {
      this.#database.run(FOLD, inode, born, first, last, batch as bigint)
    }
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
    try {
      return work()
    } catch (error) {
      if (error instanceof RangeError) throw this.#damaged(error.message, undefined)
      if (errorCode(error) !== 'ERR_SQLITE_ERROR') throw error
      throw this.#damaged((error as Error).message, error)
    }
  }

  #damaged(reason: string, cause?: unknown): Refusal {
    const wayOut = isCorrupt(cause)
      ? `repair the disk, or give up what could be restored by moving its directory away`
      : 'mend that, and the call is repeated'
    return new Refusal(
      `the ownership journal ${this.#where} cannot be used (${reason}), so nothing more is changed: ${wayOut}`,
      { cause },
    )
  }
}
