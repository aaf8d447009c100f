import type { Checksums, StoredRecord } from './checksums.ts'
import { split } from './codec.ts'
import type { Database } from './database.ts'
import { FOLD, OWN_INODES } from './schema.ts'

type Row = Record<string, unknown>

const BEFORE_ALL = -(2n ** 63n)

/** Moves the log's records to where they can be found, one batch at a time. What a crash undoes of it, the log still has. */
export function foldLog(database: Database, checksums: Checksums): void {
  for (let last = BEFORE_ALL, more = true; more; ) {
    database.relaxed(() => {
      const row = database.get('SELECT * FROM log WHERE batch > ? ORDER BY batch LIMIT 1', last)
      more = row !== undefined
      if (row === undefined) return
      const batch = fold(database, checksums, row)
      // A damaged tree need not be in order, and would be gone through for ever.
      if (batch <= last) throw new RangeError('its batches are out of order')
      last = batch
      database.run('DELETE FROM log WHERE batch = ?', batch)
    })
  }
}

/** For who only reads: a table of one's own under the same name hides the file's. */
export function foldCopy(database: Database, checksums: Checksums): void {
  database.snapshot(() => {
    database.exec(OWN_INODES)
    for (const row of database.each('SELECT * FROM main.inodes')) put(database, checksums, checksums.checkedRecord(row))
    for (const { batch } of database.all('SELECT batch FROM log ORDER BY batch')) {
      const row = database.get('SELECT * FROM log WHERE batch = ?', batch as bigint)
      if (row) fold(database, checksums, row)
    }
  })
}

function fold(database: Database, checksums: Checksums, row: Row): bigint {
  const { batch, records } = checksums.checkedChunk(row)
  for (const record of split(records)) put(database, checksums, { ...record, batch })
  return batch
}

function put(database: Database, checksums: Checksums, record: StoredRecord): void {
  const { inode, born, first, last, batch } = record
  database.run(FOLD, inode, born, first, last, batch, checksums.ofFirst(record), checksums.ofLast(record))
}
