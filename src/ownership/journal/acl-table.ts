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

  /** Reads all there is. @throws {RangeError} where one is not as it was written */
  check(): void {
    const present = new NumberSet()
    for (const row of this.#sql.iterate`SELECT * FROM acls`) {
      const { number, acl } = this.#checked(row)
      present.add(number)
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
    // Pods choose the values: with a weaker hash they could make many that are looked through one by one.
    const hash = process.getBuiltinModule('node:crypto').hash('sha256', acl, 'base64url')
    const known = this.#numbers.get(hash)
    if (known !== undefined) return known
    const row = this.#sql.get`SELECT * FROM acls WHERE hash = ${hash}`
    const number = row ? this.#numberIn(row, acl) : this.#insert(hash, acl)
    this.#numbers.put(hash, number, hash.length + PLACE)
    return number
  }

  /** What the hash is said to be of. */
  #numberIn(row: Row, acl: Uint8Array): number {
    const found = this.#checked(row)
    if (!sameBytes(found.acl, acl)) throw new RangeError('an ACL is not the one of its hash')
    return found.number
  }

  #insert(hash: string, acl: Uint8Array): number {
    const last = this.#sql.get`SELECT max(number) AS last FROM acls`?.last
    const number = typeof last === 'bigint' ? Number(last) + 1 : 1
    if (number > LARGEST) throw new RangeError('there is no number left for another ACL')
    this.#sql.run`INSERT INTO acls VALUES (${BigInt(number)}, ${hash}, ${acl}, ${this.#sum(number, acl)})`
    this.#present?.add(number)
    return number
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

  #checked({ number, acl, sum }: Row): { number: number; acl: Uint8Array } {
    if (typeof number !== 'bigint' || number < 1n || number > LARGEST || !(acl instanceof Uint8Array))
      throw new RangeError('an ACL is missing')
    if (sum !== this.#sum(Number(number), acl)) throw new RangeError('an ACL has changed')
    return { number: Number(number), acl }
  }

  #sum(number: number, acl: Uint8Array): bigint {
    return this.#checksums.of(`acl ${number}`, acl)
  }
}
