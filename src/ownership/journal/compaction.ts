import type { DatabaseSync, SQLTagStore } from 'node:sqlite'
import type { AclTable } from './acl-table.ts'
import type { Encoded } from './codec.ts'
import { NumberSet } from './number-set.ts'
import type { Records } from './records.ts'
import { transaction } from './tables.ts'

/** Among the unsettled batches: a restore. Batches are counted from 1. */
export const RESTORE = 0n

const SPARE_BYTES = 1 << 20
/** More than a record with a path of usual length takes. */
const BYTES_AN_INODE = 256

/** Whether a journal of so many bytes has more than records of so many inodes take. */
export function isLargeFor(bytes: number, inodes: number): boolean {
  return bytes > SPARE_BYTES + inodes * BYTES_AN_INODE
}

/**
 * Writes what is left of a log that has grown by far more, removes the ACLs that it does not refer to, and gives back to
 * the file system what both had.
 * @param rewrite changes each record; then it is done to a log that has not grown, too
 * @returns the batches that are unsettled then; undefined: nothing was done
 */
export function compact(
  database: DatabaseSync,
  sql: SQLTagStore,
  records: Records,
  acls: AclTable,
  unsettled: ReadonlySet<bigint>,
  rewrite?: (record: Encoded) => Encoded,
): Set<bigint> | undefined {
  const numbers = transaction(database, () => {
    const used = new NumberSet()
    const numbers = records.compact((batch) => unsettled.has(batch), used, rewrite)
    if (numbers === undefined) return undefined
    acls.keepOnly(used)
    sql.run`DELETE FROM unsettled WHERE batch <> ${RESTORE}`
    for (const batch of numbers) sql.run`INSERT INTO unsettled VALUES (${batch})`
    return numbers
  })
  if (numbers === undefined) return undefined
  database.exec('PRAGMA incremental_vacuum; PRAGMA wal_checkpoint(TRUNCATE)')
  return new Set([...(unsettled.has(RESTORE) ? [RESTORE] : []), ...numbers])
}
