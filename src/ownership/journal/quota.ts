import type { DatabaseSync } from 'node:sqlite'
import { isDatabaseFullError } from './database.ts'
import { DATABASE_PAGE_BYTES } from './tables.ts'

// SQLite's maximum.
const MAX_DATABASE_PAGES = 4294967294

/**
 * Limits the growth of the database's file.
 * @param bytes undefined: no limit
 */
export function limitDatabaseSize(database: DatabaseSync, bytes: number | undefined): void {
  const pages = bytes === undefined ? MAX_DATABASE_PAGES : Math.max(1, Math.floor(bytes / DATABASE_PAGE_BYTES))
  database.exec(`PRAGMA max_page_count = ${pages}`)
}

export function readDatabaseSize(database: DatabaseSync): number {
  return Number(database.prepare('PRAGMA page_count').get()?.page_count) * DATABASE_PAGE_BYTES
}

/** Returns an upper bound of what batches add to the file. Each batch begins on pages of its own. */
export function estimateLogGrowth(chunks: readonly Pick<Uint8Array, 'byteLength'>[]): number {
  return chunks.reduce((sum, { byteLength }) => sum + byteLength + 2 * DATABASE_PAGE_BYTES, 8 * DATABASE_PAGE_BYTES)
}

/** Like `estimateLogGrowth`, for one ACL. Small ACLs share pages, which may be half empty, with the index of hashes. */
export function estimateAclGrowth({ byteLength }: Pick<Uint8Array, 'byteLength'>): number {
  return Math.min(4 * (byteLength + 256), byteLength + 2 * DATABASE_PAGE_BYTES)
}

const JOURNAL_SPARE_BYTES = 1 << 20
/** More than a record with a path of usual length takes. */
const JOURNAL_BYTES_PER_INODE = 256

/** Returns whether a journal of this size has more than the records of so many inodes need. */
export function isJournalLargerThanNeeded(bytes: number, inodes: number): boolean {
  return bytes > JOURNAL_SPARE_BYTES + inodes * JOURNAL_BYTES_PER_INODE
}

/** Limits of a journal's file. */
export interface JournalQuota {
  /** Maximum size of the file. */
  maxBytes: number
  /** Growth that needs no reservation. */
  reservedBytes: number
  /**
   * Reserves more space.
   * @param size current bytes of the file
   * @param wanted the smallest useful growth
   * @returns the reserved bytes, at least `wanted`
   * @throws {Refusal} if the space is not available
   */
  reserve(size: number, wanted: number): number
}

/** Keeps a database's file within the reserved size. */
export class JournalSizeLimiter {
  readonly #database: DatabaseSync
  #quota: JournalQuota | undefined
  #limit = 0

  constructor(database: DatabaseSync) {
    this.#database = database
  }

  /** @param quota undefined: no limit */
  setQuota(quota: JournalQuota | undefined): void {
    this.#quota = quota
    if (quota) this.#raiseLimit(quota, quota.reservedBytes)
    else limitDatabaseSize(this.#database, undefined)
  }

  /**
   * Runs an operation that adds up to `bytes` to the file. If the limit is reached, reserves more space and runs it
   * once more.
   * @throws SQLite's error if `maxBytes` is reached or the disk is full; errors of `reserve`
   */
  runWithQuota<T>(bytes: number, operation: () => T): T {
    try {
      return operation()
    } catch (error) {
      const quota = this.#quota
      if (quota === undefined || !isDatabaseFullError(error) || this.#limit >= quota.maxBytes) throw error
      this.#raiseLimit(quota, quota.reserve(readDatabaseSize(this.#database), bytes))
      return operation()
    }
  }

  #raiseLimit({ maxBytes }: JournalQuota, bytes: number): void {
    this.#limit = Math.min(maxBytes, readDatabaseSize(this.#database) + bytes)
    limitDatabaseSize(this.#database, this.#limit)
  }
}
