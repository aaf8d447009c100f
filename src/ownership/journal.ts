import type { DatabaseSync } from 'node:sqlite'
import { errorCode, type Host } from '../host/host.ts'
import { Refusal } from '../protocol/refusal.ts'
import { FORMAT, isCorrupt, PRUNE, RECORD, SCHEMA, signed, toRecord } from './journal-schema.ts'
import type { InodeRecord } from './record.ts'

/**
 * What a volume's inodes were before modekeep changed them, and what it made of them: one SQLite database, outside the
 * volume (a pod could forge it inside). What `record` has returned from is on disk before anything is changed.
 */
export class Journal {
  readonly #database: DatabaseSync
  readonly #where: string
  /** The batch at work in this process. */
  #batch: bigint | undefined
  #unsettled = new Set<bigint>()

  /**
   * @param known the volume was walked before, so that its journal cannot be missing or empty
   * @throws {Refusal} when the file is damaged, foreign or another volume's: ownership must stop then
   */
  constructor(host: Host, path: string, volume: string, known = false) {
    this.#where = path
    this.#database = this.#guard(() => host.openDatabase(path))
    try {
      this.#guard(() => this.#claim(volume, known))
    } catch (error) {
      this.#database.close()
      throw error
    }
  }

  /** Nothing is written before the file is known to be this volume's. */
  #claim(volume: string, known: boolean): void {
    const exists = this.#database.prepare("SELECT 1 FROM sqlite_master WHERE name = 'journal'").get() !== undefined
    const row = exists ? this.#database.prepare('SELECT * FROM journal').get() : undefined
    if (row === undefined && known) throw this.#damaged('it is empty, although the volume was walked before')
    if (row && row.format !== FORMAT) throw this.#damaged(`its format is ${row.format}, this version reads ${FORMAT}`)
    if (row && row.volume !== volume) throw this.#damaged(`it belongs to volume ${row.volume}`)
    this.#database.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;')
    this.#database.exec(SCHEMA)
    if (!row) this.#database.prepare('INSERT INTO journal VALUES (?, ?)').run(FORMAT, volume)
    const statement = this.#database.prepare('SELECT batch FROM unsettled')
    statement.setReadBigInts(true)
    this.#unsettled = new Set(statement.all().map(({ batch }) => batch as bigint))
  }

  find(inode: bigint, born: bigint): InodeRecord | undefined {
    return this.#guard(() => {
      const statement = this.#statement('SELECT * FROM inodes WHERE inode = ? AND born = ?')
      statement.setReadBigInts(true)
      const row = statement.get(signed(inode), born)
      return row && toRecord(row, this.#unsettled)
    })
  }

  /** Records of changes that a process began and may not have finished: those of its last batch. */
  unfinished(): InodeRecord[] {
    if (this.#unsettled.size === 0) return []
    return this.#guard(() => {
      const statement = this.#statement('SELECT * FROM inodes WHERE batch IN (SELECT batch FROM unsettled)')
      statement.setReadBigInts(true)
      return statement.all().map((row) => toRecord(row, this.#unsettled))
    })
  }

  isEmpty(): boolean {
    return this.#guard(() => this.#statement('SELECT 1 FROM inodes LIMIT 1').get() === undefined)
  }

  /** Makes records durable. Call it before the change, and again only after the earlier batch's changes are made. */
  record(records: readonly InodeRecord[]): void {
    this.#transaction(() => {
      this.#settle()
      const begin = this.#statement('INSERT INTO unsettled DEFAULT VALUES')
      begin.setReadBigInts(true)
      const batch = begin.run().lastInsertRowid as bigint
      this.#batch = batch
      this.#unsettled.add(batch)
      const insert = this.#statement(RECORD)
      for (const r of records) {
        const { before, seen, meant, after } = r
        const found = [signed(r.inode), r.born, r.path, r.uid, before.gid, before.mode, r.capability] as const
        const now = [r.modified, r.size, seen.gid, seen.mode, Number(r.seenWhole), meant.gid, meant.mode] as const
        insert.run(...found, ...now, after.gid, after.mode, Number(r.forfeited), batch)
      }
    })
  }

  /** All changes recorded by this process have been made. */
  confirm(): void {
    this.#transaction(() => {
      this.#settle()
      // A batch of a process that died is settled when each of its inodes has been recorded or forgotten since.
      if (this.#unsettled.size > 0) this.#database.exec(PRUNE)
    })
  }

  #settle(): void {
    if (this.#batch === undefined) return
    this.#statement('DELETE FROM unsettled WHERE batch = ?').run(this.#batch)
    this.#unsettled.delete(this.#batch)
    this.#batch = undefined
  }

  /** Restored: nothing is left to put back. */
  forget(keys: readonly Pick<InodeRecord, 'inode' | 'born'>[]): void {
    this.#transaction(() => {
      const remove = this.#statement('DELETE FROM inodes WHERE inode = ? AND born = ?')
      for (const { inode, born } of keys) remove.run(signed(inode), born)
    })
  }

  close(): void {
    this.#database.close()
  }

  #statements = new Map<string, ReturnType<DatabaseSync['prepare']>>()

  #statement(sql: string) {
    let statement = this.#statements.get(sql)
    if (!statement) {
      statement = this.#database.prepare(sql)
      this.#statements.set(sql, statement)
    }
    return statement
  }

  #transaction(work: () => void): void {
    this.#guard(() => {
      this.#database.exec('BEGIN IMMEDIATE')
      try {
        work()
        this.#database.exec('COMMIT')
      } catch (error) {
        if (this.#database.isTransaction) this.#database.exec('ROLLBACK')
        throw error
      }
    })
  }

  #guard<T>(work: () => T): T {
    try {
      return work()
    } catch (error) {
      if (errorCode(error) !== 'ERR_SQLITE_ERROR') throw error
      throw this.#damaged((error as Error).message, error)
    }
  }

  #damaged(reason: string, cause?: unknown): Refusal {
    const wayOut = isCorrupt(cause)
      ? `repair the disk, or give up what could be restored by moving its directory away`
      : 'mend that, and the call is repeated'
    return new Refusal(
      `the ownership journal ${this.#where} cannot be used (${reason}), so nothing was changed: ${wayOut}`,
      { cause },
    )
  }
}
