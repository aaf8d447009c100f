import type { DatabaseSync, SQLTagStore, StatementSync } from 'node:sqlite'
import { checksum } from '../../host/checksum.ts'
import { type Encoded, split } from './codec.ts'

/** Of the tables, and of the records in them (codec.ts). */
export const FORMAT = 2

const INODES = `inodes (
  inode INTEGER NOT NULL, born INTEGER NOT NULL, first BLOB NOT NULL, last BLOB NOT NULL, batch INTEGER NOT NULL,
  first_sum INTEGER NOT NULL, last_sum INTEGER NOT NULL, PRIMARY KEY (inode, born)
) WITHOUT ROWID`

/** @param kind TEMP: for a process that only reads, and finds a file in which nothing was made yet */
export function schema(kind: 'TEMP' | '' = ''): string {
  return `
    CREATE ${kind} TABLE journal (format INTEGER NOT NULL, volume TEXT NOT NULL);
    -- Batches as they came, many records in one value: a first walk only ever appends.
    CREATE ${kind} TABLE log (batch INTEGER PRIMARY KEY, records BLOB NOT NULL, sum INTEGER NOT NULL);
    -- The log's records by inode, made when somebody looks for one.
    CREATE ${kind} TABLE ${INODES};
    -- Batches of which it is not known that all changes were made: those at work, and those of crashed processes.
    CREATE ${kind} TABLE unsettled (batch INTEGER PRIMARY KEY AUTOINCREMENT);
  `
}

export const SETTINGS = `
  PRAGMA page_size = 16384;
  PRAGMA journal_mode = WAL;
  PRAGMA synchronous = FULL;
`

type Row = Record<string, unknown>

/** A record as the journal has it, with the batch it was last recorded in. */
interface StoredRecord extends Encoded {
  batch: bigint
}

const BEFORE_ALL = -(2n ** 63n)

/**
 * What a journal's tables hold, with checksums, over the volume's name too: SQLite's pages have none, and a mode with
 * one bit turned over is a mode like any other.
 */
export class Tables {
  readonly #database: DatabaseSync
  readonly #sql: SQLTagStore
  readonly #volume: number
  #insert: StatementSync | undefined

  constructor(database: DatabaseSync, sql: SQLTagStore, volume: string) {
    this.#database = database
    this.#sql = sql
    this.#volume = checksum([Buffer.from(volume)])
  }

  append(batch: bigint, records: Uint8Array): void {
    this.#sql.run`INSERT INTO log VALUES (${batch}, ${records}, ${this.#sum([batch], records)})`
  }

  /** @throws {RangeError} where a row of `inodes` is not as it was written */
  checked({ inode, born, first, last, batch, first_sum, last_sum }: Row): StoredRecord {
    const areNumbers = typeof inode === 'bigint' && typeof born === 'bigint' && typeof batch === 'bigint'
    if (!areNumbers || !(first instanceof Uint8Array) || !(last instanceof Uint8Array))
      throw new RangeError('a record is no such thing')
    if (first_sum !== this.#sum([inode, born], first) || last_sum !== this.#sum([inode, born, batch], last))
      throw new RangeError('a record has changed')
    return { inode, born, first, last, batch }
  }

  /** Moves the log's records to where they are found, one batch at a time. What a crash undoes, the log still has. */
  foldLog(): void {
    // Not synced, only atomic and in its order.
    this.#database.exec('PRAGMA synchronous = NORMAL')
    try {
      for (let last: bigint | undefined = BEFORE_ALL; last !== undefined; ) last = this.#foldNext(last)
    } finally {
      this.#database.exec('PRAGMA synchronous = FULL')
    }
  }

  #foldNext(last: bigint): bigint | undefined {
    return transaction(this.#database, () => {
      const row = this.#sql.get`SELECT * FROM log WHERE batch > ${last} ORDER BY batch LIMIT 1`
      if (row === undefined) return undefined
      const batch = this.#fold(row, last)
      this.#sql.run`DELETE FROM log WHERE batch = ${batch}`
      return batch
    })
  }

  /** For who only reads: a table of one's own under the same name hides the file's. All is of one moment. */
  foldCopy(): void {
    this.#database.exec('BEGIN')
    try {
      this.#database.exec(`CREATE TEMP TABLE ${INODES}`)
      for (const row of this.#sql.iterate`SELECT * FROM main.inodes`) this.#put(this.checked(row))
      let last = BEFORE_ALL
      for (const row of this.#sql.iterate`SELECT * FROM log ORDER BY batch`) last = this.#fold(row, last)
    } finally {
      this.#database.exec('END')
    }
  }

  /** @throws {RangeError} where a row of `log` is not as it was written */
  #fold({ batch, records, sum }: Row, last: bigint): bigint {
    if (typeof batch !== 'bigint' || !(records instanceof Uint8Array))
      throw new RangeError('a batch of records is no such thing')
    if (sum !== this.#sum([batch], records)) throw new RangeError('a batch of records has changed')
    // A damaged tree need not be in order, and would be gone through for ever.
    if (batch <= last) throw new RangeError('its batches are out of order')
    for (const record of split(records)) this.#put({ ...record, batch })
    return batch
  }

  /** What an inode was when it was first recorded is never recorded again. */
  #put({ inode, born, first, last, batch }: StoredRecord): void {
    this.#insert ??= this.#database.prepare(`
      INSERT INTO inodes VALUES (?, ?, ?, ?, ?, ?, ?)
      ON CONFLICT DO UPDATE SET last = excluded.last, batch = excluded.batch, last_sum = excluded.last_sum`)
    const [firstSum, lastSum] = [this.#sum([inode, born], first), this.#sum([inode, born, batch], last)]
    this.#insert.run(inode, born, first, last, batch, firstSum, lastSum)
  }

  #sum(numbers: readonly bigint[], bytes: Uint8Array): bigint {
    return BigInt(checksum([new Uint8Array(BigInt64Array.from(numbers).buffer), bytes], this.#volume))
  }
}

export function transaction<T>(database: DatabaseSync, work: () => T): T {
  database.exec('BEGIN IMMEDIATE')
  try {
    const result = work()
    database.exec('COMMIT')
    return result
  } catch (error) {
    if (database.isTransaction) database.exec('ROLLBACK')
    throw error
  }
}
