import type { DatabaseSync } from 'node:sqlite'
import { isFull } from './checks.ts'
import { fileSize, limit } from './tables.ts'

/** What a journal may take of its disk. */
export interface Quota {
  /** The most bytes of its file. */
  most: number
  /** By how many it may grow without asking. */
  given: number
  /**
   * Asks for more.
   * @param size the bytes of its file
   * @param wanted the fewest more that help
   * @returns as many or more
   * @throws {Refusal} where they cannot be had
   */
  give(size: number, wanted: number): number
}

/** Keeps a database's file as small as what it was given. */
export class Room {
  readonly #database: DatabaseSync
  #quota: Quota | undefined
  #limit = 0

  constructor(database: DatabaseSync) {
    this.#database = database
  }

  /** @param quota undefined: without a limit */
  limitTo(quota: Quota | undefined): void {
    this.#quota = quota
    if (quota) this.#grow(quota, quota.given)
    else limit(this.#database, undefined)
  }

  /**
   * Does what needs up to so many bytes more, and where it finds no room does it once more with what is given for it.
   * @throws SQLite's own error where the most is reached, or the disk is full; as `give` does
   */
  for<T>(bytes: number, work: () => T): T {
    try {
      return work()
    } catch (error) {
      const quota = this.#quota
      if (quota === undefined || !isFull(error) || this.#limit >= quota.most) throw error
      this.#grow(quota, quota.give(fileSize(this.#database), bytes))
      return work()
    }
  }

  #grow({ most }: Quota, bytes: number): void {
    this.#limit = Math.min(most, fileSize(this.#database) + bytes)
    limit(this.#database, this.#limit)
  }
}
