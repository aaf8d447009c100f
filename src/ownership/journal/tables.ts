import type { DatabaseSync, SQLTagStore } from 'node:sqlite'
import { computeCrc32 } from '../../kernel/crc32.ts'

/** Format of the tables and of the records in them (codec.ts). */
export const JOURNAL_FORMAT = 4

/** @param kind TEMP: for a process that only reads, and finds a file without tables */
export function formatJournalSchema(kind: 'TEMP' | '' = ''): string {
  return `
    CREATE ${kind} TABLE journal (format INTEGER NOT NULL, volume TEXT NOT NULL, disk TEXT);
    -- Batches as they came, many records in one value.
    CREATE ${kind} TABLE log (batch INTEGER PRIMARY KEY AUTOINCREMENT, records BLOB NOT NULL, sum INTEGER NOT NULL);
    -- The ACLs that records refer to; the hash is that of the ACL, to find it by.
    CREATE ${kind} TABLE acls (number INTEGER PRIMARY KEY, hash TEXT NOT NULL UNIQUE, acl BLOB NOT NULL, sum INTEGER NOT NULL);
    -- Batches of which it is not known that all changes were made: those at work, and those of crashed processes.
    CREATE ${kind} TABLE unsettled (batch INTEGER PRIMARY KEY);
  `
}

export const DATABASE_PAGE_BYTES = 16384

const LAYOUT_PRAGMAS = `
  PRAGMA page_size = ${DATABASE_PAGE_BYTES};
  PRAGMA auto_vacuum = INCREMENTAL;
`

export const LOG_PRAGMAS = `
  PRAGMA journal_mode = WAL;
  PRAGMA synchronous = FULL;
`

/** For a file without tables. */
export const JOURNAL_PRAGMAS = `${LAYOUT_PRAGMAS}${LOG_PRAGMAS}`

/**
 * Begins the log of a new file with a commit that is not synced, as nothing depends on it. The first batch syncs the whole
 * log. SQLite would else sync the log's header by itself.
 */
const BEGIN_LOG_PRAGMAS = `
  PRAGMA synchronous = OFF;
  PRAGMA user_version = 1;
  PRAGMA synchronous = FULL;
`

/** Only a file that `fillNewJournal` made has it. */
export const FIRST_RECORD_TABLE = 'first'

/** Returns false until the content of the log has reached a file that `fillNewJournal` made, and if the log is lost. */
export function hasLogBegun(sql: SQLTagStore): boolean {
  return sql.get`PRAGMA user_version`?.user_version !== 0n
}

/**
 * Writes the content of a new journal.
 * @param disk identity of the volume's disk
 * @param firstRecord text of the volume's record during its first walk, which is not synced by itself
 */
export function fillNewJournal(
  database: DatabaseSync,
  volume: string,
  disk: string | undefined,
  firstRecord: string | undefined,
): void {
  database.exec(LAYOUT_PRAGMAS)
  createJournalTables(database, volume, disk)
  if (firstRecord === undefined) return
  database.exec(`CREATE TABLE ${FIRST_RECORD_TABLE} (record TEXT NOT NULL)`)
  database.prepare(`INSERT INTO ${FIRST_RECORD_TABLE} VALUES (?)`).run(firstRecord)
}

/** One transaction: a concurrent reader sees all of it or nothing. */
export function createJournalTables(database: DatabaseSync, volume: string, disk: string | undefined): void {
  runTransaction(database, () => {
    database.exec(formatJournalSchema())
    database.prepare('INSERT INTO journal VALUES (?, ?, ?)').run(JOURNAL_FORMAT, volume, disk ?? null)
  })
}

export function beginLogUnsynced(database: DatabaseSync): void {
  database.exec(BEGIN_LOG_PRAGMAS)
}

/** Runs an operation whose commits a power cut may undo, in their order, until the next commit is synced. */
export function runUnsynced<T>(database: DatabaseSync, operation: () => T): T {
  database.exec('PRAGMA synchronous = NORMAL')
  try {
    return operation()
  } finally {
    database.exec('PRAGMA synchronous = FULL')
  }
}

/** A row as SQLite returns it, before its columns are verified. */
export type SqlRow = Record<string, unknown>

/** A batch of records, a row of the log. */
export interface RecordBatch {
  number: bigint
  sum: bigint
  records: Uint8Array
}

/**
 * The rows of the log. A row's checksum also covers the row before it and the volume's name.
 * SQLite's pages have no checksums, a mode with one flipped bit is a valid mode, and no row may be missing between two
 * others.
 */
export class RecordLog {
  readonly #sql: SQLTagStore
  readonly #checksums: JournalChecksums

  constructor(sql: SQLTagStore, volume: string) {
    this.#sql = sql
    this.#checksums = new JournalChecksums(volume)
  }

  isEmpty(): boolean {
    return this.#sql.get`SELECT 1 FROM log LIMIT 1` === undefined
  }

  /** Number of batches. */
  count(): number {
    return Number(this.#sql.get`SELECT count(*) AS count FROM log`?.count)
  }

  /** Total bytes of the records. */
  size(): number {
    return Number(this.#sql.get`SELECT total(length(records)) AS size FROM log`?.size)
  }

  readLastSum(): bigint | undefined {
    return this.#sql.get`SELECT sum FROM log ORDER BY batch DESC LIMIT 1`?.sum as bigint | undefined
  }

  /** @param before the checksum of the previous batch */
  append(records: Uint8Array, before: bigint | undefined): RecordBatch {
    const used = this.#sql.get`SELECT seq FROM sqlite_sequence WHERE name = 'log'`?.seq
    const number = typeof used === 'bigint' ? used + 1n : 1n
    const batch = { number, sum: this.#checksums.computeBatchSum(number, records, before), records }
    this.insert(batch)
    return batch
  }

  /** Inserts a batch copied from a log of the same volume, in the same order. */
  insert({ number, sum, records }: RecordBatch): void {
    this.#sql.run`INSERT INTO log VALUES (${number}, ${records}, ${sum})`
  }

  /** Appends the chunks in order as batches. */
  appendAll(chunks: readonly Uint8Array[]): RecordBatch[] {
    let last = this.readLastSum()
    return chunks.map((records) => {
      const batch = this.append(records, last)
      last = batch.sum
      return batch
    })
  }

  /**
   * All batches in order.
   * @throws {RangeError} if a batch is missing or differs from what was written
   */
  *readAll(): Generator<RecordBatch> {
    let before: bigint | undefined
    for (const row of this.#sql.iterate`SELECT * FROM log ORDER BY batch`) {
      const batch = this.#parseRow(row, before)
      before = batch.sum
      yield batch
    }
  }

  /**
   * @param before as for `append`
   * @throws {RangeError} if the batch differs from what was written
   */
  read(number: bigint, before: bigint | undefined): Uint8Array {
    return this.#parseRow(this.#sql.get`SELECT * FROM log WHERE batch = ${number}` ?? {}, before).records
  }

  /** Deletes all batches up to this number. */
  removeUpTo(number: bigint): void {
    this.#sql.run`DELETE FROM log WHERE batch <= ${number}`
  }

  #parseRow({ batch: number, records, sum }: SqlRow, before: bigint | undefined): RecordBatch {
    if (typeof number !== 'bigint' || typeof sum !== 'bigint' || !(records instanceof Uint8Array))
      throw new RangeError('a batch of records is no such thing')
    if (sum !== this.#checksums.computeBatchSum(number, records, before))
      throw new RangeError('a batch of records has changed')
    return { number, sum, records }
  }
}

/**
 * Frees a buffer at once. The garbage collector counts only the small wrapper object, so it would wait for many of
 * them.
 */
export function freeBuffer({ buffer }: ArrayBufferView): void {
  if (buffer instanceof ArrayBuffer) buffer.transfer(0)
}

export function runTransaction<T>(database: DatabaseSync, operation: () => T): T {
  database.exec('BEGIN IMMEDIATE')
  try {
    const result = operation()
    database.exec('COMMIT')
    return result
  } catch (error) {
    if (database.isTransaction) database.exec('ROLLBACK')
    throw error
  }
}

/** To load node:zlib takes longer than a checksum of so many bytes. */
const MAX_BYTES_WITHOUT_ZLIB = 1 << 18

/**
 * Checksums of one volume's journal. They cover the volume and the row's number, so a row moved from elsewhere does not
 * match.
 */
export class JournalChecksums {
  readonly #volume: number

  constructor(volume: string) {
    this.#volume = computeCrc32([Buffer.from(volume)])
  }

  /** @param before the checksum of the previous batch, so that a missing batch is noticed */
  computeBatchSum(number: bigint, records: Uint8Array, before: bigint | undefined): bigint {
    return this.#compute(`${number} ${before}`, records)
  }

  computeAclSum(number: bigint, acl: Uint8Array): bigint {
    return this.#compute(`acl ${number}`, acl)
  }

  /** @param place identifies the row */
  #compute(place: string, bytes: Uint8Array): bigint {
    const seed = computeCrc32([Buffer.from(place)], this.#volume)
    if (bytes.length <= MAX_BYTES_WITHOUT_ZLIB) return BigInt(computeCrc32([bytes], seed))
    return BigInt(process.getBuiltinModule('node:zlib').crc32(bytes, seed))
  }
}
