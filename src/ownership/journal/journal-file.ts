import type { DatabaseSync, SQLTagStore } from 'node:sqlite'
import type { Host } from '../../host/host.ts'
import type { InodeRecord } from '../inode/record.ts'
import { AclTable } from './acl-table.ts'
import { explainErrors, type JournalOpenOptions, prepareTables } from './checks.ts'
import { addBaseline, concatBytes, decodeRecord, type EncodedRecord, encodeForgotten, encodeRecords } from './codec.ts'
import { compactJournal, RESTORE_MARK } from './compaction.ts'
import { FileQuota, type Quota } from './quota.ts'
import { Records } from './records.ts'
import { type Batch, estimateLogGrowth, RecordLog, runTransaction } from './tables.ts'

/** Content of one transaction. */
export interface JournalWrite {
  /** Batches whose changes have all been made. */
  settled: readonly bigint[]
  /** Inode and birth time in turn of the inodes to be forgotten. */
  forgotten: readonly BigInt64Array[]
  /** A new, unsettled batch: encoded records without an ACL, then the others. */
  batch?: { plain: Uint8Array; records: readonly InodeRecord[] }
}

/** A journal's database. It throws a Refusal that names the file instead of SQLite's errors and RangeErrors. */
export class JournalFile {
  /** The unsettled batches when the file was opened. */
  readonly unsettled: Set<bigint>
  /** The last recorded disk of the volume. */
  readonly disk: string | undefined
  readonly #path: string
  readonly #database: DatabaseSync
  readonly #sql: SQLTagStore
  readonly #log: RecordLog
  readonly #acls: AclTable
  readonly #fileQuota: FileQuota

  constructor(host: Host, options: JournalOpenOptions) {
    const { path, volume } = options
    this.#path = path
    this.#database = this.guard(() => host.openDatabase(path))
    this.#sql = this.#database.createTagStore()
    this.#log = new RecordLog(this.#sql, volume)
    this.#acls = new AclTable(this.#sql, volume)
    this.#fileQuota = new FileQuota(this.#database)
    const { unsettled, disk } = this.guard(() => prepareTables(this.#database, this.#sql, options))
    this.unsettled = unsettled
    this.disk = disk
  }

  guard<T>(operation: () => T): T {
    return explainErrors(this.#path, operation)
  }

  isEmpty(): boolean {
    return this.guard(() => this.#log.isEmpty())
  }

  /** Total bytes of the records and ACLs. */
  measureSize(): number {
    return this.guard(() => this.#log.size() + this.#acls.size())
  }

  setQuota(quota: Quota | undefined): void {
    this.guard(() => this.#fileQuota.setQuota(quota))
  }

  /** Reads and verifies all rows. */
  readRecords(): Records {
    return this.guard(() => {
      this.#acls.loadNumbers()
      return new Records(this.#log, this.#acls)
    })
  }

  decode(record: EncodedRecord, settled: boolean): InodeRecord {
    return this.guard(() => decodeRecord(record, settled, this.#acls))
  }

  recordRestore(): void {
    this.guard(() => this.#sql.run`INSERT INTO unsettled VALUES (${RESTORE_MARK})`)
  }

  /** @returns the appended batches in order; `own`: the new one among them */
  write({ settled, forgotten, batch }: JournalWrite): { batches: Batch[]; own: Batch | undefined } {
    // Forgotten inodes come first, because the new batch may record them again.
    const forgottenRecords = forgotten.map(encodeForgotten)
    const operation = () => {
      for (const number of settled) this.#sql.run`DELETE FROM unsettled WHERE batch = ${number}`
      const batches = this.#log.appendAll(batch ? [...forgottenRecords, this.#encodeBatch(batch)] : forgottenRecords)
      const own = batch && batches.at(-1)
      if (own) this.#sql.run`INSERT INTO unsettled VALUES (${own.number})`
      return { batches, own }
    }
    const growthBytes = estimateLogGrowth(
      batch ? [...forgottenRecords, { byteLength: estimateBatchBytes(batch) }] : forgottenRecords,
    )
    return this.guard(() =>
      this.#fileQuota.runWithQuota(growthBytes, () =>
        this.#acls.clearCacheOnError(() => runTransaction(this.#database, operation)),
      ),
    )
  }

  /** Runs within the transaction, so that new ACLs are written with the records that refer to them. */
  #encodeBatch({ plain, records }: { plain: Uint8Array; records: readonly InodeRecord[] }): Uint8Array {
    return records.length === 0 ? plain : concatBytes([plain, encodeRecords(records, this.#acls)])
  }

  /** Rewrites the log if it has grown far beyond its records: see compaction.ts. */
  compact(records: Records, unsettled: ReadonlySet<bigint>): Set<bigint> | undefined {
    return this.guard(() => compactJournal(this.#database, this.#sql, records, this.#acls, unsettled))
  }

  /** Makes the target of each record's change the baseline of its inode, in one transaction. */
  setBaseline(records: Records, unsettled: ReadonlySet<bigint>): Set<bigint> | undefined {
    return this.guard(() => compactJournal(this.#database, this.#sql, records, this.#acls, unsettled, addBaseline))
  }

  close(): void {
    this.#database.close()
  }
}

/** More than the fixed part of a record takes, or of an ACL's row. */
const MAX_FIXED_BYTES = 128

/** Returns an upper bound of a batch's bytes, as if each of its ACLs were new. */
function estimateBatchBytes({ plain, records }: NonNullable<JournalWrite['batch']>): number {
  const sizes = records.map(({ path, capability, acl: { before, seen, after } }) =>
    [path, capability, before, seen, after].reduce((sum, bytes) => sum + (bytes?.length ?? 0), 4 * MAX_FIXED_BYTES),
  )
  return sizes.reduce((sum, size) => sum + size, plain.length)
}
