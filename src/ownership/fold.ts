import { split } from './codec.ts'
import type { Database } from './database.ts'
import { FOLD, OWN_INODES } from './journal-schema.ts'

type Row = Record<string, unknown>

/** Moves the log's records to where they can be found, one batch at a time. What a crash undoes of it, the log still has. */
export function foldLog(database: Database): void {
  for (let more = true; more; ) {
    database.relaxed(() => {
      const row = database.get('SELECT batch, records FROM log ORDER BY batch LIMIT 1')
      more = row !== undefined
      if (row === undefined) return
      put(database, row)
      database.run('DELETE FROM log WHERE batch = ?', row.batch as bigint)
    })
  }
}

/** For who only reads: a table of one's own under the same name hides the file's. */
export function foldCopy(database: Database): void {
  database.snapshot(() => {
    database.exec(OWN_INODES)
    for (const { batch } of database.all('SELECT batch FROM log ORDER BY batch')) {
      const row = database.get('SELECT batch, records FROM log WHERE batch = ?', batch as bigint)
      if (row) put(database, row)
    }
  })
}

function put(database: Database, { batch, records }: Row): void {
  for (const { inode, born, first, last } of split(records as Uint8Array)) {
    database.run(FOLD, inode, born, first, last, batch as bigint)
  }
}
