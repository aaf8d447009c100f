import type { DatabaseSync, SQLTagStore } from 'node:sqlite'
import type { Host } from '../../host/host.ts'
import type { InodeRecord } from '../inode/record.ts'
import { AclTable } from './acl-table.ts'
import { type About, explaining, prepare } from './checks.ts'
import { decode, type Encoded, encode, encodeForgotten, joined, withBaseline } from './codec.ts'
import { compact, RESTORE } from './compaction.ts'
import { Records } from './records.ts'
import { type Quota, Room } from './room.ts'
import { type Batch, Log, roomFor, transaction } from './tables.ts'

/** What one transaction is to write. */
export interface Written {
  /** Batches of which all changes were made. */
  settled: readonly bigint[]
  /** Inode and birth time in turn of those that are forgotten. */
  forgotten: readonly BigInt64Array[]
  /** A new batch, unsettled: records without an ACL, encoded, and others. */
  batch?: { plain: Uint8Array; records: readonly InodeRecord[] }
}

/** A journal's database. Instead of SQLite's own errors and RangeErrors it throws a Refusal that names the file. */
export class JournalFile {
  /** The unsettled batches when it was opened. */
  readonly unsettled: Set<bigint>
  /** What the volume lay on when that was last noted. */
  readonly disk: string | undefined
  readonly #path: string
  readonly #database: DatabaseSync
  readonly #sql: SQLTagStore
  readonly #log: Log
  readonly #acls: AclTable
  readonly #room: Room

  constructor(host: Host, about: About) {
    const { path, volume } = about
    this.#path = path
    this.#database = this.guard(() => host.openDatabase(path))
    this.#sql = this.#database.createTagStore()
    this.#log = new Log(this.#sql, volume)
    this.#acls = new AclTable(this.#sql, volume)
    this.#room = new Room(this.#database)
    const { unsettled, disk } = this.guard(() => prepare(this.#database, this.#sql, about))
    this.unsettled = unsettled
    this.disk = disk
  }

  guard<T>(work: () => T): T {
    return explaining(this.#path, work)
  }

  isEmpty(): boolean {
    return this.guard(() => this.#log.isEmpty())
  }

  /** Of all records and ACLs together, bytes. */
  size(): number {
    return this.guard(() => this.#log.size() + this.#acls.size())
  }

  limitTo(quota: Quota | undefined): void {
    this.guard(() => this.#room.limitTo(quota))
  }

  /** Reads, and checks, all there is. */
  records(): Records {
    return this.guard(() => {
      this.#acls.check()
      return new Records(this.#log, this.#acls)
    })
  }

  decode(record: Encoded, settled: boolean): InodeRecord {
    return this.guard(() => decode(record, settled, this.#acls))
  }

  noteRestore(): void {
    this.guard(() => this.#sql.run`INSERT INTO unsettled VALUES (${RESTORE})`)
  }

  /** @returns the batches that were appended, in their order, and which is the new one */
  write({ settled, forgotten, batch }: Written): { batches: Batch[]; own: Batch | undefined } {
    // Before what is new: an inode may be recorded again.
    const gone = forgotten.map(encodeForgotten)
    const work = () => {
      for (const number of settled) this.#sql.run`DELETE FROM unsettled WHERE batch = ${number}`
      const batches = this.#log.appendAll(batch ? [...gone, this.#encoded(batch)] : gone)
      const own = batch && batches.at(-1)
      if (own) this.#sql.run`INSERT INTO unsettled VALUES (${own.number})`
      return { batches, own }
    }
    const room = roomFor(batch ? [...gone, { byteLength: mostBytes(batch) }] : gone)
    return this.guard(() => this.#room.for(room, () => this.#acls.within(() => transaction(this.#database, work))))
  }

  /** Within the transaction: new ACLs are written with the records that refer to them. */
  #encoded({ plain, records }: { plain: Uint8Array; records: readonly InodeRecord[] }): Uint8Array {
    return records.length === 0 ? plain : joined([plain, encode(records, this.#acls)])
  }

  /** See compaction.ts. */
  compact(records: Records, unsettled: ReadonlySet<bigint>): Set<bigint> | undefined {
    return this.guard(() => compact(this.#database, this.#sql, records, this.#acls, unsettled))
  }

  /** Makes what each record's change results in the baseline of its inode, in one transaction. */
  setBaseline(records: Records, unsettled: ReadonlySet<bigint>): Set<bigint> | undefined {
    return this.guard(() => compact(this.#database, this.#sql, records, this.#acls, unsettled, withBaseline))
  }

  close(): void {
    this.#database.close()
  }
}

/** Of a record without what has no fixed size, and of an ACL's row without the ACL: more than either takes. */
const FIXED = 128

/** Of a batch, were each of its ACLs a new one. */
function mostBytes({ plain, records }: NonNullable<Written['batch']>): number {
  const sizes = records.map(({ path, capability, acl: { before, seen, after } }) =>
    [path, capability, before, seen, after].reduce((sum, bytes) => sum + (bytes?.length ?? 0), 4 * FIXED),
  )
  return sizes.reduce((sum, size) => sum + size, plain.length)
}
