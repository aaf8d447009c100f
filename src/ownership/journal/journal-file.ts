import type { DatabaseSync, SQLTagStore } from 'node:sqlite'
import type { Host } from '../../kernel/host.ts'
import type { InodeRecord } from '../inode/record.ts'
import { AclTable, NumberSet } from './acl-table.ts'
import { addRecordBaseline, concatBytes, decodeRecord, type EncodedRecord, encodeInodeRecords } from './codec.ts'
import {
  closeIfFailed,
  createJournalRefusal,
  createMissingJournal,
  explainJournalErrors,
  type JournalOpenOptions,
  prepareJournalTables,
} from './database.ts'
import { LOG_MARK_SUFFIX } from './file-names.ts'
import { encodeForgottenInodes } from './layout.ts'
import { estimateLogGrowth, type JournalQuota, JournalSizeLimiter } from './quota.ts'
import { IndexedRecordLog } from './records.ts'
import { hasLogBegun, type RecordBatch, RecordLog, runTransaction, runUnsynced } from './tables.ts'

/** Content of one transaction. */
export interface JournalTransaction {
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
  readonly #files: Host['files']
  readonly #isReadOnly: boolean
  /** The next commit is the first of a new log. */
  #mustMarkLog: boolean
  #isLogMarked: boolean
  readonly #database: DatabaseSync
  readonly #sql: SQLTagStore
  readonly #log: RecordLog
  readonly #acls: AclTable
  readonly #fileQuota: JournalSizeLimiter

  constructor(host: Host, options: JournalOpenOptions) {
    const { path, volume } = options
    this.#path = path
    this.#files = host.files
    this.#isReadOnly = options.isReadOnly
    const isCreated = this.guard(() => createMissingJournal(host, options))
    // Before the database is open: an error would leave it open in a worker that stays, and its log undeleted.
    this.#isLogMarked = host.files.has(path + LOG_MARK_SUFFIX)
    this.#database = this.guard(() => host.openDatabase(path, options.isReadOnly ? 'existing' : undefined))
    this.#sql = this.#database.createTagStore()
    this.#log = new RecordLog(this.#sql, volume)
    this.#acls = new AclTable(this.#sql, volume)
    this.#fileQuota = new JournalSizeLimiter(this.#database)
    const { unsettled, disk } = this.guard(() => prepareJournalTables(this.#database, this.#sql, options, isCreated))
    this.guard(() => closeIfFailed(this.#database, () => this.#refuseLostLog()))
    this.#mustMarkLog = isCreated
    this.unsettled = unsettled
    this.disk = disk
  }

  guard<T>(operation: () => T): T {
    return explainJournalErrors(this.#path, operation)
  }

  isEmpty(): boolean {
    return this.guard(() => this.#log.isEmpty())
  }

  /** Total bytes of the records and ACLs. */
  measureSize(): number {
    return this.guard(() => this.#log.size() + this.#acls.size())
  }

  setQuota(quota: JournalQuota | undefined): void {
    this.guard(() => this.#fileQuota.setQuota(quota))
  }

  /** Reads and verifies all rows. */
  readRecords(): IndexedRecordLog {
    return this.guard(() => {
      this.#acls.loadNumbers()
      return new IndexedRecordLog(this.#log, this.#acls)
    })
  }

  decode(record: EncodedRecord, settled: boolean): InodeRecord {
    return this.guard(() => decodeRecord(record, settled, this.#acls))
  }

  recordRestore(): void {
    this.guard(() => this.#sql.run`INSERT INTO unsettled VALUES (${RESTORE_BATCH_NUMBER})`)
  }

  /** @returns the appended batches in order; `own`: the new one among them */
  write({ settled, forgotten, batch }: JournalTransaction): { batches: RecordBatch[]; own: RecordBatch | undefined } {
    // Forgotten inodes come first, because the new batch may record them again.
    const forgottenRecords = forgotten.map(encodeForgottenInodes)
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
    const commit = () =>
      this.#fileQuota.runWithQuota(growthBytes, () =>
        this.#acls.clearCacheOnError(() => runTransaction(this.#database, operation)),
      )
    // Records must be durable before the changes. What was settled or forgotten may be checked again.
    const written = this.guard(() => (batch === undefined ? runUnsynced(this.#database, commit) : commit()))
    if (this.#mustMarkLog) this.#markLog()
    return written
  }

  /** Runs within the transaction, so that new ACLs are written with the records that refer to them. */
  #encodeBatch({ plain, records }: { plain: Uint8Array; records: readonly InodeRecord[] }): Uint8Array {
    return records.length === 0 ? plain : concatBytes([plain, encodeInodeRecords(records, this.#acls)])
  }

  /** Rewrites the log if it has grown far beyond its records: see compactJournal. */
  compact(records: IndexedRecordLog, unsettled: ReadonlySet<bigint>): Set<bigint> | undefined {
    return this.guard(() => compactJournal(this.#database, this.#sql, records, this.#acls, unsettled))
  }

  /** Makes the target of each record's change the baseline of its inode, in one transaction. */
  setBaseline(records: IndexedRecordLog, unsettled: ReadonlySet<bigint>): Set<bigint> | undefined {
    return this.guard(() =>
      compactJournal(this.#database, this.#sql, records, this.#acls, unsettled, addRecordBaseline),
    )
  }

  /** @throws {Refusal} if the first batch was synced, but the log that had it is lost */
  #refuseLostLog(): void {
    if (!this.#isLogMarked || hasLogBegun(this.#sql)) return
    throw createJournalRefusal(this.#path, 'its log is lost, although the volume was walked before')
  }

  #markLog(): void {
    this.#files.append(this.#path + LOG_MARK_SUFFIX, '')
    this.#mustMarkLog = false
    this.#isLogMarked = true
  }

  close(): void {
    this.#database.close()
    if (!this.#isLogMarked || this.#isReadOnly) return
    try {
      // The journal has the log's content now.
      this.#files.remove(this.#path + LOG_MARK_SUFFIX)
    } catch {
      // A close fails no call. The next one removes the mark.
    }
  }
}

/** More than the fixed part of a record takes, or of an ACL's row. */
const MAX_FIXED_RECORD_BYTES = 128

/** Returns an upper bound of a batch's bytes, as if each of its ACLs were new. */
function estimateBatchBytes({ plain, records }: NonNullable<JournalTransaction['batch']>): number {
  const sizes = records.map(({ path, capability, acl: { before, seen, after } }) =>
    [path, capability, before, seen, after].reduce(
      (sum, bytes) => sum + (bytes?.length ?? 0),
      4 * MAX_FIXED_RECORD_BYTES,
    ),
  )
  return sizes.reduce((sum, size) => sum + size, plain.length)
}

/** An entry of the unsettled batches that marks a restore. Batches are counted from 1. */
export const RESTORE_BATCH_NUMBER = 0n

/**
 * Rewrites a log that has grown far beyond its live records, deletes unused ACLs, and returns the freed space to the
 * file system.
 * @param rewrite changes each record; the log is then rewritten even if it has not grown
 * @returns the unsettled batches after it; undefined: nothing was done
 */
export function compactJournal(
  database: DatabaseSync,
  sql: SQLTagStore,
  records: IndexedRecordLog,
  acls: AclTable,
  unsettled: ReadonlySet<bigint>,
  rewrite?: (record: EncodedRecord) => EncodedRecord,
): Set<bigint> | undefined {
  const numbers = runTransaction(database, () => {
    const used = new NumberSet()
    const numbers = records.compact((batch) => unsettled.has(batch), used, rewrite)
    if (numbers === undefined) return undefined
    acls.removeUnused(used)
    sql.run`DELETE FROM unsettled WHERE batch <> ${RESTORE_BATCH_NUMBER}`
    for (const batch of numbers) sql.run`INSERT INTO unsettled VALUES (${batch})`
    return numbers
  })
  if (numbers === undefined) return undefined
  database.exec('PRAGMA incremental_vacuum; PRAGMA wal_checkpoint(TRUNCATE)')
  return new Set([...(unsettled.has(RESTORE_BATCH_NUMBER) ? [RESTORE_BATCH_NUMBER] : []), ...numbers])
}
