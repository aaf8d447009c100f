import type { SQLTagStore } from 'node:sqlite'
import { isSameBytes } from '../inode/record.ts'
import type { AclStore } from './codec.ts'
import { freeBuffer, JournalChecksums, type SqlRow } from './tables.ts'
import { WeightedCache } from './weighted-cache.ts'

/** Limit of the ACLs kept in memory, with an allowance for each cache entry. */
const MAX_CACHED_ACL_BYTES = 1 << 20
const CACHED_ACL_OVERHEAD_BYTES = 128
/** A record stores the number in 32 bits. */
const MAX_ACL_NUMBER = 0xffffffff
const ACL_NUMBERS_PER_QUERY = 1000

/** A row of the table. */
export interface NumberedAcl {
  number: bigint
  sum: bigint
  acl: Uint8Array
}

/**
 * ACLs are looked up by this hash. Pods choose their content, so a weaker hash would let a pod make many that collide.
 */
export function hashAcl(acl: Uint8Array): string {
  return process.getBuiltinModule('node:crypto').hash('sha256', acl, 'base64url')
}

export function isAclNumber(number: bigint): boolean {
  return number >= 1n && number <= MAX_ACL_NUMBER
}

/**
 * The ACLs that records refer to by number, each stored once. Mostly a whole tree has the same ACL, and one ACL can be
 * larger than a thousand records. Each row has a checksum, like the rows of the log.
 */
export class AclTable implements AclStore {
  readonly #sql: SQLTagStore
  readonly #checksums: JournalChecksums
  readonly #numbers = new WeightedCache<string, number>(MAX_CACHED_ACL_BYTES)
  readonly #acls = new WeightedCache<number, Uint8Array>(MAX_CACHED_ACL_BYTES)
  /** Undefined until `loadNumbers` has read the table. */
  #present: NumberSet | undefined

  constructor(sql: SQLTagStore, volume: string) {
    this.#sql = sql
    this.#checksums = new JournalChecksums(volume)
  }

  /** Total bytes of the ACLs. */
  size(): number {
    return Number(this.#sql.get`SELECT total(length(acl)) AS size FROM acls`?.size)
  }

  /** Number of ACLs. */
  count(): number {
    return Number(this.#sql.get`SELECT count(*) AS count FROM acls`?.count)
  }

  /**
   * All ACLs in the order of their hashes.
   * @throws {RangeError} if a row differs from what was written
   */
  *readAll(): Generator<NumberedAcl> {
    for (const row of this.#sql.iterate`SELECT * FROM acls ORDER BY hash`) {
      const found = this.#parseRow(row)
      if (row.hash !== hashAcl(found.acl)) throw new RangeError('an ACL is not the one of its hash')
      yield found
    }
  }

  /** Inserts a row copied from a table of the same volume. */
  insert({ number, sum, acl }: NumberedAcl): void {
    this.#sql.run`INSERT INTO acls VALUES (${number}, ${hashAcl(acl)}, ${acl}, ${sum})`
  }

  /**
   * Reads and verifies all rows.
   * @throws {RangeError} if a row differs from what was written
   */
  loadNumbers(): void {
    const present = new NumberSet()
    for (const row of this.#sql.iterate`SELECT * FROM acls`) {
      const { number, acl } = this.#parseRow(row)
      present.add(Number(number))
      freeBuffer(acl)
    }
    this.#present = present
  }

  /** Returns whether the table has this number. Call it after `loadNumbers`. */
  has(number: number): boolean {
    return this.#present?.has(number) ?? false
  }

  /** Runs a transaction, and clears the cache if it fails, because its new rows were rolled back. */
  clearCacheOnError<T>(write: () => T): T {
    try {
      return write()
    } catch (error) {
      this.#clearCache()
      throw error
    }
  }

  /**
   * Returns the ACL's number, and inserts the ACL if it is new. Call it within the transaction that writes the record.
   */
  assignNumber(acl: Uint8Array): number {
    const hash = hashAcl(acl)
    const cached = this.#numbers.get(hash)
    if (cached !== undefined) return cached
    const row = this.#sql.get`SELECT * FROM acls WHERE hash = ${hash}`
    const number = row ? this.#readNumber(row, acl) : this.#append(acl)
    this.#numbers.put(hash, number, hash.length + CACHED_ACL_OVERHEAD_BYTES)
    return number
  }

  /** Verifies that the row found by hash has this ACL. */
  #readNumber(row: SqlRow, acl: Uint8Array): number {
    const found = this.#parseRow(row)
    if (!isSameBytes(found.acl, acl)) throw new RangeError('an ACL is not the one of its hash')
    return Number(found.number)
  }

  #append(acl: Uint8Array): number {
    const last = this.#sql.get`SELECT max(number) AS last FROM acls`?.last
    const number = typeof last === 'bigint' ? last + 1n : 1n
    if (!isAclNumber(number)) throw new RangeError('there is no number left for another ACL')
    this.insert({ number, sum: this.#checksums.computeAclSum(number, acl), acl })
    this.#present?.add(Number(number))
    return Number(number)
  }

  /** @throws {RangeError} if the number is missing, or the row differs from what was written */
  get(number: number): Uint8Array {
    const cached = this.#acls.get(number)
    if (cached) return cached
    const { acl } = this.#parseRow(this.#sql.get`SELECT * FROM acls WHERE number = ${BigInt(number)}` ?? {})
    this.#acls.put(number, acl, acl.length + CACHED_ACL_OVERHEAD_BYTES)
    return acl
  }

  #clearCache(): void {
    this.#numbers.clear()
    this.#acls.clear()
  }

  /** Deletes the ACLs that no record refers to. Call it within a transaction. */
  removeUnused(used: NumberSet): void {
    this.#clearCache()
    let last = 0n
    for (;;) {
      const numbers = this.#sql
        .all`SELECT number FROM acls WHERE number > ${last} ORDER BY number LIMIT ${ACL_NUMBERS_PER_QUERY}`
      for (const { number } of numbers) {
        if (!used.has(Number(number))) this.#sql.run`DELETE FROM acls WHERE number = ${number as bigint}`
        last = number as bigint
      }
      if (numbers.length < ACL_NUMBERS_PER_QUERY) return
    }
  }

  #parseRow({ number, acl, sum }: SqlRow): NumberedAcl {
    if (typeof number !== 'bigint' || !isAclNumber(number) || !(acl instanceof Uint8Array))
      throw new RangeError('an ACL is missing')
    if (typeof sum !== 'bigint' || sum !== this.#checksums.computeAclSum(number, acl))
      throw new RangeError('an ACL has changed')
    return { number, sum, acl }
  }
}

const INITIAL_BITMAP_BYTES = 128

/** A set of numbers from 0 on, with one bit for each up to the largest: there can be millions. */
export class NumberSet {
  #bits = new Uint8Array(INITIAL_BITMAP_BYTES)

  add(number: number): void {
    const at = Math.floor(number / 8)
    if (at >= this.#bits.length) {
      const bits = new Uint8Array(2 * at)
      bits.set(this.#bits)
      this.#bits = bits
    }
    this.#bits[at] = (this.#bits[at] as number) | (1 << (number % 8))
  }

  has(number: number): boolean {
    return ((this.#bits[Math.floor(number / 8)] ?? 0) & (1 << (number % 8))) !== 0
  }
}
