import type { DatabaseSync } from 'node:sqlite'
import { errorCode, type Host } from '../host/host.ts'
import { Refusal } from '../protocol/refusal.ts'
import type { InodeRecord } from './record.ts'

const FORMAT = 1

// A batch's changes are known to be made when the next one is recorded: `settled` is the last such batch.
const SCHEMA = `
  CREATE TABLE IF NOT EXISTS journal (
    format INTEGER NOT NULL, volume TEXT NOT NULL, last INTEGER NOT NULL, settled INTEGER NOT NULL
  );
  CREATE TABLE IF NOT EXISTS inodes (
    inode INTEGER NOT NULL, born INTEGER NOT NULL, path BLOB NOT NULL,
    uid INTEGER NOT NULL, gid INTEGER NOT NULL, mode INTEGER NOT NULL, capability BLOB,
    after_gid INTEGER NOT NULL, after_mode INTEGER NOT NULL,
    prior_gid INTEGER NOT NULL, prior_mode INTEGER NOT NULL,
    batch INTEGER NOT NULL,
    PRIMARY KEY (inode, born)
  ) WITHOUT ROWID;
`

/**
 * What a volume's inodes were before modekeep changed them, and what it made of them: one SQLite database, outside the
 * volume (a pod could forge it inside). What `record` has returned from is on disk before anything is changed.
 */
export class Journal {
  readonly #database: DatabaseSync
  readonly #where: string
  #last = 0
  #settled = 0

  /** @throws {Refusal} when the file is damaged, foreign or another volume's: ownership must stop then */
  constructor(host: Host, path: string, volume: string) {
    this.#where = path
    this.#database = this.#guard(() => host.openDatabase(path))
    try {
      this.#guard(() => {
        this.#database.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;')
        this.#database.exec(SCHEMA)
        this.#claim(volume)
      })
    } catch (error) {
      this.#database.close()
      throw error
    }
  }

  #claim(volume: string): void {
    const row = this.#database.prepare('SELECT * FROM journal').get()
    if (row === undefined) {
      this.#database.prepare('INSERT INTO journal VALUES (?, ?, 0, 0)').run(FORMAT, volume)
      return
    }
    if (row.format !== FORMAT) throw this.#damaged(`its format is ${row.format}, this version reads ${FORMAT}`)
    if (row.volume !== volume) throw this.#damaged(`it belongs to volume ${row.volume}`)
    this.#last = Number(row.last)
    this.#settled = Number(row.settled)
  }

  find(inode: bigint, born: bigint): InodeRecord | undefined {
    return this.#guard(() => {
      const statement = this.#statement('SELECT * FROM inodes WHERE inode = ? AND born = ?')
      statement.setReadBigInts(true)
      const row = statement.get(signed(inode), born)
      return row && this.#toRecord(row)
    })
  }

  /** Records of changes that may not have been finished: those of the last batch, if a process died with it. */
  unfinished(): InodeRecord[] {
    if (this.#last === this.#settled) return []
    return this.#guard(() => {
      const statement = this.#statement('SELECT * FROM inodes WHERE batch > ?')
      statement.setReadBigInts(true)
      return statement.all(this.#settled).map((row) => this.#toRecord(row))
    })
  }

  isEmpty(): boolean {
    return this.#guard(() => this.#statement('SELECT 1 FROM inodes LIMIT 1').get() === undefined)
  }

  /** Makes records durable. Call it before the change, and again only after the earlier batch's changes are made. */
  record(records: readonly InodeRecord[]): void {
    this.#transaction(() => {
      this.#mark(this.#last + 1, this.#last)
      const insert = this.#statement('INSERT OR REPLACE INTO inodes VALUES (?,?,?,?,?,?,?,?,?,?,?,?)')
      for (const r of records) {
        const { before, after, prior } = r
        const found = [signed(r.inode), r.born, r.path, r.uid, before.gid, before.mode, r.capability] as const
        insert.run(...found, after.gid, after.mode, prior.gid, prior.mode, this.#last)
      }
    })
  }

  /** All changes recorded so far have been made. */
  confirm(): void {
    this.#transaction(() => this.#mark(this.#last, this.#last))
  }

  #mark(last: number, settled: number): void {
    this.#statement('UPDATE journal SET last = ?, settled = ?').run(last, settled)
    this.#last = last
    this.#settled = settled
  }

  /** Restored, or gone from the volume: nothing is left to put back. */
  forget(keys: readonly Pick<InodeRecord, 'inode' | 'born'>[]): void {
    this.#transaction(() => {
      const remove = this.#statement('DELETE FROM inodes WHERE inode = ? AND born = ?')
      for (const { inode, born } of keys) remove.run(signed(inode), born)
    })
  }

  *all(): Generator<InodeRecord> {
    const statement = this.#database.prepare('SELECT * FROM inodes')
    statement.setReadBigInts(true)
    for (const row of statement.iterate()) yield this.#toRecord(row)
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

  #toRecord(row: Record<string, unknown>): InodeRecord {
    const ownership = (gid: string, mode: string) => ({ gid: Number(row[gid]), mode: Number(row[mode]) })
    return {
      inode: BigInt.asUintN(64, row.inode as bigint),
      born: row.born as bigint,
      path: row.path as Uint8Array,
      uid: Number(row.uid),
      before: ownership('gid', 'mode'),
      capability: row.capability as Uint8Array | null,
      after: ownership('after_gid', 'after_mode'),
      prior: ownership('prior_gid', 'prior_mode'),
      settled: Number(row.batch) <= this.#settled,
    }
  }

  #damaged(reason: string, cause?: unknown): Refusal {
    return new Refusal(
      `the ownership journal ${this.#where} cannot be used (${reason}): nothing was changed without a record; repair the disk or move the file aside, knowing that what it holds can then not be restored`,
      { cause },
    )
  }
}

// SQLite's integers are signed; inode numbers use all 64 bits on some file systems.
function signed(inode: bigint): bigint {
  return BigInt.asIntN(64, inode)
}
