import type { DatabaseSync } from 'node:sqlite'
import { isFullError } from './checks.ts'
import { limitFileSize, readFileSize } from './tables.ts'

/** Limits of a journal's file. */
export interface Quota {
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
export class FileQuota {
  readonly #database: DatabaseSync
  #quota: Quota | undefined
  #limit = 0

  constructor(database: DatabaseSync) {
    this.#database = database
  }

  /** @param quota undefined: no limit */
  setQuota(quota: Quota | undefined): void {
    this.#quota = quota
    if (quota) this.#raiseLimit(quota, quota.reservedBytes)
    else limitFileSize(this.#database, undefined)
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
      if (quota === undefined || !isFullError(error) || this.#limit >= quota.maxBytes) throw error
      this.#raiseLimit(quota, quota.reserve(readFileSize(this.#database), bytes))
      return operation()
    }
  }

  #raiseLimit({ maxBytes }: Quota, bytes: number): void {
    this.#limit = Math.min(maxBytes, readFileSize(this.#database) + bytes)
    limitFileSize(this.#database, this.#limit)
  }
}
