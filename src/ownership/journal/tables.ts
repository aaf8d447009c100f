import type { DatabaseSync, SQLTagStore } from 'node:sqlite'
import { Checksums } from './checksums.ts'

/** Of the tables, and of the records in them (codec.ts). */
export const FORMAT = 4

/** @param kind TEMP: for a process that only reads, and finds a file in which nothing was made yet */
export function schema(kind: 'TEMP' | '' = ''): string {
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

const PAGE_SIZE = 16384
// SQLite's own.
const MOST_PAGES = 4294967294

export const SETTINGS = `
  PRAGMA page_size = ${PAGE_SIZE};
  PRAGMA auto_vacuum = INCREMENTAL;
  PRAGMA journal_mode = WAL;
  PRAGMA synchronous = FULL;
`

type Row = Record<string, unknown>

/** A batch of records as it lies in the log. */
export interface Batch {
  number: bigint
  sum: bigint
  records: Uint8Array
}

/**
 * The rows of the log. The checksum of each also covers the one before it and the volume's name: SQLite's pages have
 * none, a mode with one bit turned over is a mode like any other, and no row may be missing between two others.
 */
export class Log {
  readonly #sql: SQLTagStore
  readonly #checksums: Checksums

  constructor(sql: SQLTagStore, volume: string) {
    this.#sql = sql
    this.#checksums = new Checksums(volume)
  }

  isEmpty(): boolean {
    return this.#sql.get`SELECT 1 FROM log LIMIT 1` === undefined
  }

  /** Of batches. */
  count(): number {
    return Number(this.#sql.get`SELECT count(*) AS count FROM log`?.count)
  }

  /** Of all records together. */
  size(): number {
    return Number(this.#sql.get`SELECT total(length(records)) AS size FROM log`?.size)
  }

  lastSum(): bigint | undefined {
    return this.#sql.get`SELECT sum FROM log ORDER BY batch DESC LIMIT 1`?.sum as bigint | undefined
  }

  /** @param before the checksum of the batch before this one */
  append(records: Uint8Array, before: bigint | undefined): Batch {
    const used = this.#sql.get`SELECT seq FROM sqlite_sequence WHERE name = 'log'`?.seq
    const number = typeof used === 'bigint' ? used + 1n : 1n
    const batch = { number, sum: this.#checksums.ofBatch(number, records, before), records }
    this.insert(batch)
    return batch
  }

  /** A batch as it lay in a log of the same volume, after those that were before it there. */
  insert({ number, sum, records }: Batch): void {
    this.#sql.run`INSERT INTO log VALUES (${number}, ${records}, ${sum})`
  }

  /** In their order, after all that there is. */
  appendAll(chunks: readonly Uint8Array[]): Batch[] {
    let last = this.lastSum()
    return chunks.map((records) => {
      const batch = this.append(records, last)
      last = batch.sum
      return batch
    })
  }

  /** All batches in their order. @throws {RangeError} where one is not as it was written, or one is missing */
  *all(): Generator<Batch> {
    let before: bigint | undefined
    for (const row of this.#sql.iterate`SELECT * FROM log ORDER BY batch`) {
      const batch = this.#checked(row, before)
      before = batch.sum
      yield batch
    }
  }

  /** @param before as of `append` @throws {RangeError} where it is not as it was written */
  read(number: bigint, before: bigint | undefined): Uint8Array {
    return this.#checked(this.#sql.get`SELECT * FROM log WHERE batch = ${number}` ?? {}, before).records
  }

  /** Removes all batches up to one. */
  removeTo(number: bigint): void {
    this.#sql.run`DELETE FROM log WHERE batch <= ${number}`
  }

  #checked({ batch: number, records, sum }: Row, before: bigint | undefined): Batch {
    if (typeof number !== 'bigint' || typeof sum !== 'bigint' || !(records instanceof Uint8Array))
      throw new RangeError('a batch of records is no such thing')
    if (sum !== this.#checksums.ofBatch(number, records, before)) throw new RangeError('a batch of records has changed')
    return { number, sum, records }
  }
}

/** Gives back the memory of what is not needed any more: a collector that sees a small object waits for many of them. */
export function release({ buffer }: ArrayBufferView): void {
  if (buffer instanceof ArrayBuffer) buffer.transfer(0)
}

/**
 * From then on no more is written to the database's file.
 * @param bytes undefined: without a limit
 */
export function limit(database: DatabaseSync, bytes: number | undefined): void {
  const pages = bytes === undefined ? MOST_PAGES : Math.max(1, Math.floor(bytes / PAGE_SIZE))
  database.exec(`PRAGMA max_page_count = ${pages}`)
}

/** The bytes of a database's file. */
export function fileSize(database: DatabaseSync): number {
  return Number(database.prepare('PRAGMA page_count').get()?.page_count) * PAGE_SIZE
}

/** The most bytes that batches of records add to a database's file: each begins on pages of its own. */
export function roomFor(chunks: readonly Pick<Uint8Array, 'byteLength'>[]): number {
  return chunks.reduce((sum, { byteLength }) => sum + byteLength + 2 * PAGE_SIZE, 8 * PAGE_SIZE)
}

/** The same of one ACL: small ones share pages, which may be half empty, with those of the index of hashes. */
export function roomForAcl({ byteLength }: Pick<Uint8Array, 'byteLength'>): number {
  return Math.min(4 * (byteLength + 256), byteLength + 2 * PAGE_SIZE)
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
