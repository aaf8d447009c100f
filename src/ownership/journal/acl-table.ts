import type { SQLTagStore } from 'node:sqlite'
import { sameBytes } from '../inode/record.ts'
import { Checksums } from './checksums.ts'
import type { Acls } from './codec.ts'
import { NumberSet } from './number-set.ts'
import { Recent } from './recent.ts'
import { release } from './tables.ts'

/** Bytes of ACLs that are kept in memory, each with some for its place there. */
const MOST_CACHED = 1 << 20
const PLACE = 128
/** A record has no room for a larger number. */
const LARGEST = 0xffffffff
const AT_ONCE = 1000

type Row = Record<string, unknown>

/** An ACL as it lies in the table. */
export interface NumberedAcl {
  number: bigint
  sum: bigint
  acl: Uint8Array
}

/** By which an ACL is found. Pods choose the values: with a weaker hash they could make many that are looked through. */
export function hashOf(acl: Uint8Array): string {
  return process.getBuiltinModule('node:crypto').hash('sha256', acl, 'base64url')
}

/** Whether an ACL may have that number. */
export function isNumber(number: bigint): boolean {
  return number >= 1n && number <= LARGEST
}

/**
 * The ACLs that records refer to by number, each once: mostly a whole tree has one and the same, and an ACL may be
 * larger than a thousand records. Its rows have checksums as those of the log have.
 */
export class AclTable implements Acls {
  readonly #sql: SQLTagStore
  readonly #checksums: Checksums
  readonly #numbers = new Recent<string, number>(MOST_CACHED)
  readonly #acls = new Recent<number, Uint8Array>(MOST_CACHED)
  /** Undefined until all were read. */
  #present: NumberSet | undefined

  constructor(sql: SQLTagStore, volume: string) {
    this.#sql = sql
    this.#checksums = new Checksums(volume)
  }

  /** Of all ACLs together. */
  size(): number {
    return Number(this.#sql.get`SELECT total(length(acl)) AS size FROM acls`?.size)
  }

  /** How many there are. */
  count(): number {
    return Number(this.#sql.get`SELECT count(*) AS count FROM acls`?.count)
  }

  /** All of them, in the order of their hashes. @throws {RangeError} where one is not as it was written */
  *all(): Generator<NumberedAcl> {
    for (const row of this.#sql.iterate`SELECT * FROM acls ORDER BY hash`) {
      const found = this.#checked(row)
      if (row.hash !== hashOf(found.acl)) throw new RangeError('an ACL is not the one of its hash')
      yield found
    }
  }

  /** An ACL as it lay in a table of the same volume. */
  insert({ number, sum, acl }: NumberedAcl): void {
    this.#sql.run`INSERT INTO acls VALUES (${number}, ${hashOf(acl)}, ${acl}, ${sum})`
  }

  /** Reads all there is. @throws {RangeError} where one is not as it was written */
  check(): void {
    const present = new NumberSet()
    for (const row of this.#sql.iterate`SELECT * FROM acls`) {
      const { number, acl } = this.#checked(row)
      present.add(Number(number))
      release(acl)
    }
    this.#present = present
  }

  /** Whether there is an ACL of that number, once `check` has read them. */
  has(number: number): boolean {
    return this.#present?.has(number) ?? false
  }

  /** @param write a transaction; where it fails, what it has put in is not there */
  within<T>(write: () => T): T {
    try {
      return write()
    } catch (error) {
      this.#clear()
      throw error
    }
  }

  /** Within the transaction that writes the record. @returns the number of an ACL, which is put in if it is new */
  numberOf(acl: Uint8Array): number {
    const hash = hashOf(acl)
    const known = this.#numbers.get(hash)
    if (known !== undefined) return known
    const row = this.#sql.get`SELECT * FROM acls WHERE hash = ${hash}`
    const number = row ? this.#numberIn(row, acl) : this.#append(acl)
    this.#numbers.put(hash, number, hash.length + PLACE)
    return number
  }

  /** What the hash is said to be of. */
  #numberIn(row: Row, acl: Uint8Array): number {
    const found = this.#checked(row)
    if (!sameBytes(found.acl, acl)) throw new RangeError('an ACL is not the one of its hash')
    return Number(found.number)
  }

  #append(acl: Uint8Array): number {
    const last = this.#sql.get`SELECT max(number) AS last FROM acls`?.last
    const number = typeof last === 'bigint' ? last + 1n : 1n
    if (!isNumber(number)) throw new RangeError('there is no number left for another ACL')
    this.insert({ number, sum: this.#checksums.ofAcl(number, acl), acl })
    this.#present?.add(Number(number))
    return Number(number)
  }

  /** @throws {RangeError} where there is none of that number, or it is not as it was written */
  get(number: number): Uint8Array {
    const known = this.#acls.get(number)
    if (known) return known
    const { acl } = this.#checked(this.#sql.get`SELECT * FROM acls WHERE number = ${BigInt(number)}` ?? {})
    this.#acls.put(number, acl, acl.length + PLACE)
    return acl
  }

  #clear(): void {
    this.#numbers.clear()
    this.#acls.clear()
  }

  /** Removes, within a transaction, what no record refers to. */
  keepOnly(used: NumberSet): void {
    this.#clear()
    let last = 0n
    for (;;) {
      const numbers = this.#sql.all`SELECT number FROM acls WHERE number > ${last} ORDER BY number LIMIT ${AT_ONCE}`
      for (const { number } of numbers) {
        if (!used.has(Number(number))) this.#sql.run`DELETE FROM acls WHERE number = ${number as bigint}`
        last = number as bigint
      }
      if (numbers.length < AT_ONCE) return
    }
  }

  #checked({ number, acl, sum }: Row): NumberedAcl {
    if (typeof number !== 'bigint' || !isNumber(number) || !(acl instanceof Uint8Array))
      throw new RangeError('an ACL is missing')
    if (typeof sum !== 'bigint' || sum !== this.#checksums.ofAcl(number, acl))
      throw new RangeError('an ACL has changed')
    return { number, sum, acl }
  }
}
