import type { Host } from '../../host/host.ts'
import type { InodeRecord } from '../inode/record.ts'
import { Checksums } from './checksums.ts'
import { decode, type Encoded, encode } from './codec.ts'
import { Database } from './database.ts'
import { foldCopy, foldLog } from './fold.ts'
import { damaged, guarded, unknownFormat } from './journal-error.ts'
import { FORMAT, OWN_END, OWN_NOTHING, PRUNE, SCHEMA, SETTINGS, signed } from './schema.ts'

/**
 * What a volume's inodes were before modekeep changed them, and what it made of them: one SQLite database, outside the
 * volume (a pod could forge it inside). What `append` has returned from is on disk before anything is changed.
 */
export class Journal {
  readonly #database: Database
  readonly #where: string
  readonly #reading: boolean
  readonly #checksums: Checksums
  #unsettled = new Set<bigint>()
  /** Those of the unsettled batches that this process is about to make. */
  readonly #own = new Set<bigint>()
  /** Settled, but not on disk yet: that can wait for the next transaction. */
  #settled: bigint[] = []
  #isFolded = false

  /**
   * Makes a journal where there is none.
   * @param known the volume was walked before, so that its journal cannot be missing or empty
   * @throws {Refusal} when the file is damaged, foreign, another volume's or of another format: ownership must stop then
   */
  static open(host: Host, path: string, volume: string, known = false): Journal {
    return new Journal(host, path, volume, known, false)
  }

  /** Nothing is written to the file, by whatever is called; a walk may be writing to it meanwhile. @throws as `open` */
  static openForReading(host: Host, path: string, volume: string, known = false): Journal {
    return new Journal(host, path, volume, known, true)
  }

  private constructor(host: Host, path: string, volume: string, known: boolean, reading: boolean) {
    this.#where = path
    this.#reading = reading
    this.#checksums = new Checksums(volume)
    this.#database = this.#guard(() => new Database(host.openDatabase(path)))
    try {
      this.#guard(() => {
        const isMade = this.#check(volume, known)
        if (!reading) this.#database.exec(SETTINGS)
        if (!isMade && reading) this.#database.exec(OWN_NOTHING)
        else if (!isMade) this.#make(volume)
        this.#isFolded = reading && !isMade
        this.#unsettled = new Set(this.#database.all('SELECT batch FROM unsettled').map(({ batch }) => batch as bigint))
      })
    } catch (error) {
      this.#database.close()
      throw error
    }
  }

  /**
   * Reads whose the file is, before anything is written to it.
   * @returns whether it has its tables; false for a new file
   */
  #check(volume: string, known: boolean): boolean {
    const tables = this.#database.all('SELECT name FROM sqlite_master').map(({ name }) => name)
    const isMade = tables.includes('journal')
    if (!isMade && tables.length > 0) throw damaged(this.#where, 'it is a database of something else')
    if (!isMade && known) throw damaged(this.#where, 'it is empty, although the volume was walked before')
    if (!isMade) return false
    const row = this.#database.get('SELECT * FROM journal')
    if (row?.format !== BigInt(FORMAT)) throw unknownFormat(this.#where, row?.format)
    if (row.volume !== volume) throw damaged(this.#where, `it belongs to volume ${row.volume}`)
    return true
  }

  /** In one transaction: whoever reads meanwhile finds all of it or nothing. */
  #make(volume: string): void {
    this.#database.transaction(() => {
      this.#database.exec(SCHEMA)
      this.#database.run('INSERT INTO journal VALUES (?, ?)', FORMAT, volume)
    })
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
      const { batch, ...record } = this.#checksums.checkedRecord(row)
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
        .map((row) => this.#checksums.checkedRecord(row))
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
          this.#database.run('INSERT INTO log VALUES (?, ?, ?)', batch, chunk, this.#checksums.ofChunk(batch, chunk))
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
    // A batch of a crashed process is settled when each of its inodes has been recorded or forgotten since.
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
      for (const row of this.#database.each('SELECT * FROM inodes')) this.#checksums.checkedRecord(row)
    })
  }

  close(): void {
    if (this.#reading) this.#database.exec(OWN_END)
    this.#database.close()
  }

  /** Moves the log's records to where they can be found, one batch at a time. What a crash undoes of it, the log still has. */
  #fold(): void {
    if (this.#isFolded) return
    this.#guard(() => (this.#reading ? foldCopy : foldLog)(this.#database, this.#checksums))
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
}
