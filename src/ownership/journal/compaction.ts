import type { DatabaseSync, SQLTagStore } from 'node:sqlite'
import type { Records } from './records.ts'
import { transaction } from './tables.ts'

/** Among the unsettled batches: a restore. Batches are counted from 1. */
export const RESTORE = 0n

/**
 * Writes what is left of a log that has grown by far more, and gives back to the file system what it had. Journals of
 * earlier versions keep that, for what is recorded next.
 * @returns the batches that are unsettled then; undefined: nothing was done
 */
export function compact(
  database: DatabaseSync,
  sql: SQLTagStore,
  records: Records,
  unsettled: ReadonlySet<bigint>,
): Set<bigint> | undefined {
  const numbers = transaction(database, () => {
    const numbers = records.compact((batch) => unsettled.has(batch))
    if (numbers) sql.run`DELETE FROM unsettled WHERE batch <> ${RESTORE}`
    for (const batch of numbers ?? []) sql.run`INSERT INTO unsettled VALUES (${batch})`
    return numbers
  })
  if (numbers === undefined) return undefined
  database.exec('PRAGMA incremental_vacuum; PRAGMA wal_checkpoint(TRUNCATE)')
  return new Set([...(unsettled.has(RESTORE) ? [RESTORE] : []), ...numbers])
}
