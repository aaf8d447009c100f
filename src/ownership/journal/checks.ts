import type { DatabaseSync, SQLTagStore } from 'node:sqlite'
import { errorCode } from '../../host/host.ts'
import { Refusal, UnknownFormat } from '../../refusal/refusal.ts'
import { FORMAT, SETTINGS, schema, transaction } from './tables.ts'

/** A journal that is opened. */
export interface About {
  /** Of its file. */
  path: string
  volume: string
  /** The volume was walked before, so that its journal cannot be missing or empty. */
  known: boolean
  /** Nothing is written to the file. */
  reading: boolean
  /** What the volume lies on, to be noted; undefined: that stays as it is. */
  disk?: string | undefined
}

/**
 * Reads whose the file is, before anything is written to it.
 * @returns its one row; undefined for a new file, without tables
 */
function checkFile(sql: SQLTagStore, { path: where, volume, known }: About): Record<string, unknown> | undefined {
  const tables = sql.all`SELECT name FROM sqlite_master`.map(({ name }) => name)
  const isMade = tables.includes('journal')
  if (!isMade && tables.length > 0) throw damaged(where, 'it is a database of something else')
  if (!isMade && known) throw damaged(where, 'it is empty, although the volume was walked before')
  if (!isMade) return undefined
  const row = sql.get`SELECT * FROM journal`
  if (row?.format !== BigInt(FORMAT)) throw unknownFormat(where, row?.format)
  if (row.volume !== volume) throw damaged(where, `it belongs to volume ${row.volume}`)
  return row
}

/**
 * The same, and makes the tables where there are none. Of a file that is refused the database is closed.
 * @returns the unsettled batches, and what the volume lay on when that was last noted
 */
export function prepare(database: DatabaseSync, sql: SQLTagStore, about: About) {
  try {
    const disk = makeTables(database, sql, about)
    return { disk, unsettled: new Set(sql.all`SELECT batch FROM unsettled`.map(({ batch }) => batch as bigint)) }
  } catch (error) {
    database.close()
    throw error
  }
}

function makeTables(database: DatabaseSync, sql: SQLTagStore, about: About): string | undefined {
  const { volume, reading, disk } = about
  // All that is read is of one moment.
  if (reading) database.exec('BEGIN')
  const row = checkFile(sql, about)
  if (!reading) database.exec(SETTINGS)
  if (!row && reading) database.exec(schema('TEMP'))
  // In one transaction: whoever reads meanwhile finds all of it or nothing.
  else if (!row)
    transaction(database, () => {
      database.exec(schema())
      sql.run`INSERT INTO journal VALUES (${FORMAT}, ${volume}, ${disk ?? null})`
    })
  else if (disk !== undefined && row.disk !== disk) sql.run`UPDATE journal SET disk = ${disk}`
  return disk ?? (typeof row?.disk === 'string' ? row.disk : undefined)
}

const GIVE_UP = 'or give up what could be restored by moving its directory away'

/** @param where the journal's file; `cause`: SQLite's error, without one the content does not fit */
export function damaged(where: string, reason: string, cause?: unknown): Refusal {
  if (primaryCode(cause) === SQLITE_FULL) return new Refusal(unusable(where, reason, MORE_ROOM), { cause })
  const wayOut = isCorrupt(cause) ? `repair the disk, ${GIVE_UP}` : 'remove the cause, and the call is repeated'
  return new Refusal(unusable(where, reason, wayOut), { cause })
}

const MORE_ROOM =
  'make room on the disk if it is full; else the volume has reached "stateQuota" of the configuration: raise that, restore the volume, or mount it without ownership'

/** Works with the journal's file. @throws {Refusal} that names it, instead of SQLite's own error */
export function explaining<T>(where: string, work: () => T): T {
  try {
    return work()
  } catch (error) {
    if (error instanceof RangeError) throw damaged(where, error.message)
    // Another kind of file in the journal's place, or a link.
    const isRefusedPath = errorCode(error) === 'EPERM' || errorCode(error) === 'ELOOP'
    if (errorCode(error) !== 'ERR_SQLITE_ERROR' && !isRefusedPath) throw error
    throw damaged(where, (error as Error).message, error)
  }
}

/** Another version of modekeep has made the journal. It stays as it is: that version can still restore the volume. */
export function unknownFormat(where: string, format: unknown): Refusal {
  const reason = `its format is ${format}, this version reads ${FORMAT}`
  return new UnknownFormat(unusable(where, reason, `install the version of modekeep that made it, ${GIVE_UP}`))
}

function unusable(where: string, reason: string, wayOut: string): string {
  return `the ownership journal ${where} cannot be used (${reason}), so nothing more is changed: ${wayOut}`
}

const SQLITE_CORRUPT = 11
const SQLITE_FULL = 13
const SQLITE_NOTADB = 26

/** Whether SQLite found no room, in its limit or on the disk. */
export function isFull(error: unknown): boolean {
  return errorCode(error) === 'ERR_SQLITE_ERROR' && primaryCode(error) === SQLITE_FULL
}

/** Without a cause it is the journal's own content that does not fit. */
export function isCorrupt(cause: unknown): boolean {
  const primary = primaryCode(cause)
  return primary === SQLITE_CORRUPT || primary === SQLITE_NOTADB
}

/** The low byte is the error, the rest its variety. */
function primaryCode(cause: unknown): number {
  return ((cause as { errcode?: number } | undefined)?.errcode ?? SQLITE_CORRUPT) & 0xff
}
