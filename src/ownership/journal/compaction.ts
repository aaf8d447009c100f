import type { DatabaseSync, SQLTagStore } from 'node:sqlite'
import type { AclTable } from './acl-table.ts'
import type { EncodedRecord } from './codec.ts'
import { NumberSet } from './number-set.ts'
import type { Records } from './records.ts'
import { runTransaction } from './tables.ts'

/** An entry of the unsettled batches that marks a restore. Batches are counted from 1. */
export const RESTORE_MARK = 0n

const SPARE_BYTES = 1 << 20
/** More than a record with a path of usual length takes. */
const BYTES_PER_INODE = 256

/** Returns whether a journal of this size has more than the records of so many inodes need. */
export function isLargerThanNeeded(bytes: number, inodes: number): boolean {
  return bytes > SPARE_BYTES + inodes * BYTES_PER_INODE
}

/**
 * Rewrites a log that has grown far beyond its live records, deletes unused ACLs, and returns the freed space to the
 * file system.
 * @param rewrite changes each record; the log is then rewritten even if it has not grown
 * @returns the unsettled batches after it; undefined: nothing was done
 */
export function compactJournal(
  database: DatabaseSync,
  sql: SQLTagStore,
  records: Records,
  acls: AclTable,
  unsettled: ReadonlySet<bigint>,
  rewrite?: (record: EncodedRecord) => EncodedRecord,
): Set<bigint> | undefined {
  const numbers = runTransaction(database, () => {
    const used = new NumberSet()
    const numbers = records.compact((batch) => unsettled.has(batch), used, rewrite)
    if (numbers === undefined) return undefined
    acls.removeUnused(used)
    sql.run`DELETE FROM unsettled WHERE batch <> ${RESTORE_MARK}`
    for (const batch of numbers) sql.run`INSERT INTO unsettled VALUES (${batch})`
    return numbers
  })
  if (numbers === undefined) return undefined
  database.exec('PRAGMA incremental_vacuum; PRAGMA wal_checkpoint(TRUNCATE)')
  return new Set([...(unsettled.has(RESTORE_MARK) ? [RESTORE_MARK] : []), ...numbers])
}
