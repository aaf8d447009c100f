import type { DatabaseSync, SQLTagStore } from 'node:sqlite'
import { createFault } from '../../errors/fault.ts'
import { Refusal, UnknownFormatRefusal } from '../../errors/refusal.ts'
import { getErrno, type Host } from '../../kernel/host.ts'
import {
  beginLogUnsynced,
  createJournalTables,
  FIRST_RECORD_TABLE,
  fillNewJournal,
  formatJournalSchema,
  JOURNAL_FORMAT,
  JOURNAL_PRAGMAS,
  LOG_PRAGMAS,
} from './tables.ts'

/** Parameters of opening a journal. */
export interface JournalOpenOptions {
  /** Path of the journal's file. */
  path: string
  volume: string
  /** The volume was walked before, so its journal must exist and have content. */
  wasWalked: boolean
  /** Nothing is written to the file. */
  isReadOnly: boolean
  /** Identity of the disk that the volume is on, to be recorded; undefined: the recorded one stays. */
  disk?: string | undefined
  /** Text of the volume's record, which a new file keeps: see readFirstRecord. */
  firstRecord?: string | undefined
}

/**
 * Verifies the file's format and volume before anything is written to it.
 * @returns its only row; undefined for a new file without tables
 */
function verifyJournalFile(
  sql: SQLTagStore,
  { path, volume, wasWalked }: JournalOpenOptions,
): Record<string, unknown> | undefined {
  const tables = sql.all`SELECT name FROM sqlite_master`.map(({ name }) => name)
  const isMade = tables.includes('journal')
  if (!isMade && tables.length > 0) throw createJournalRefusal(path, 'it is a database of something else')
  if (!isMade && wasWalked) throw createJournalRefusal(path, 'it is empty, although the volume was walked before')
  if (!isMade) return undefined
  const row = sql.get`SELECT * FROM journal`
  if (row?.format !== BigInt(JOURNAL_FORMAT)) throw createJournalFormatRefusal(path, row?.format)
  if (row.volume !== volume) throw createJournalRefusal(path, `it belongs to volume ${row.volume}`)
  return row
}

/** Creates the journal's file if it may be missing and is. @returns whether it was created */
export function createMissingJournal(host: Host, options: JournalOpenOptions): boolean {
  const { path, volume, disk, firstRecord, isReadOnly, wasWalked } = options
  if (isReadOnly || wasWalked || host.files.has(path)) return false
  try {
    host.createDatabase(path, (database) => fillNewJournal(database, volume, disk, firstRecord))
  } catch (error) {
    if (!['ENOSPC', 'EDQUOT'].includes(getErrno(error) ?? '')) throw error
    const message = formatUnusableJournal(path, 'there is no space for it')
    throw new Refusal(createFault('journal-full', message, JOURNAL_FULL_REMEDY), { cause: error })
  }
  return host.files.has(path)
}

/**
 * Returns the record of the volume's first walk, whose own file a power cut may have lost. Undefined: the journal has none.
 * @throws {Refusal} if the file cannot be read
 */
export function readFirstRecord(host: Host, path: string): string | undefined {
  return explainJournalErrors(path, () => {
    const database = host.openDatabase(path, 'existing')
    try {
      const isKept =
        database.prepare(`SELECT 1 FROM sqlite_master WHERE name = '${FIRST_RECORD_TABLE}'`).get() !== undefined
      const text = isKept && database.prepare(`SELECT record FROM ${FIRST_RECORD_TABLE}`).get()?.record
      return typeof text === 'string' ? text : undefined
    } finally {
      database.close()
    }
  })
}

/**
 * Verifies the file, and creates the tables of one without. Closes the database if the file is refused.
 * @param isCreated by createMissingJournal just now
 * @returns the unsettled batches, and the last recorded disk
 */
export function prepareJournalTables(
  database: DatabaseSync,
  sql: SQLTagStore,
  options: JournalOpenOptions,
  isCreated = false,
) {
  return closeIfFailed(database, () => {
    const disk = requireJournalTables(database, sql, options)
    if (isCreated) beginLogUnsynced(database)
    return { disk, unsettled: new Set(sql.all`SELECT batch FROM unsettled`.map(({ batch }) => batch as bigint)) }
  })
}

/** Runs an operation that opens a journal. A worker that stays would keep the log of one that cannot be opened. */
export function closeIfFailed<T>(database: DatabaseSync, operation: () => T): T {
  try {
    return operation()
  } catch (error) {
    database.close()
    throw error
  }
}

function requireJournalTables(
  database: DatabaseSync,
  sql: SQLTagStore,
  options: JournalOpenOptions,
): string | undefined {
  const { volume, isReadOnly, disk } = options
  // A transaction, so that all reads see the same state.
  if (isReadOnly) database.exec('BEGIN')
  const row = verifyJournalFile(sql, options)
  // In a file with tables the pragmas of the layout would commit and sync a page without a change.
  if (!isReadOnly) database.exec(row ? LOG_PRAGMAS : JOURNAL_PRAGMAS)
  if (!row && isReadOnly) database.exec(formatJournalSchema('TEMP'))
  else if (!row) createJournalTables(database, volume, disk)
  else if (disk !== undefined && row.disk !== disk) sql.run`UPDATE journal SET disk = ${disk}`
  return disk ?? (typeof row?.disk === 'string' ? row.disk : undefined)
}

const GIVE_UP_RESTORE_REMEDY = 'or give up what could be restored by moving its directory away'

/**
 * @param path the journal's file
 * @param cause SQLite's error; undefined: the content is invalid
 */
export function createJournalRefusal(path: string, reason: string, cause?: unknown): Refusal {
  if (getPrimarySqliteCode(cause) === SQLITE_FULL)
    return new Refusal(createFault('journal-full', formatUnusableJournal(path, reason), JOURNAL_FULL_REMEDY), { cause })
  const remedy = isDatabaseCorruptError(cause)
    ? `repair the disk, ${GIVE_UP_RESTORE_REMEDY}`
    : 'remove the cause, and the call is repeated'
  return new Refusal(createFault('journal', formatUnusableJournal(path, reason), remedy), { cause })
}

const JOURNAL_FULL_REMEDY =
  'make room on the disk if it is full; else the volume has reached "stateQuota" of the configuration: raise that, restore the volume, or mount it without ownership'

/**
 * Runs an operation on the journal's file.
 * @throws {Refusal} that names the file, instead of SQLite's own error
 */
export function explainJournalErrors<T>(path: string, operation: () => T): T {
  try {
    return operation()
  } catch (error) {
    if (error instanceof RangeError) throw createJournalRefusal(path, error.message)
    // The journal's path is a link, or not a regular file.
    const isRefusedPath = getErrno(error) === 'EPERM' || getErrno(error) === 'ELOOP'
    if (getErrno(error) !== 'ERR_SQLITE_ERROR' && !isRefusedPath) throw error
    throw createJournalRefusal(path, (error as Error).message, error)
  }
}

/**
 * The journal was made by another version of modekeep. It is not changed, because that version can still restore the
 * volume.
 */
export function createJournalFormatRefusal(path: string, format: unknown): Refusal {
  const reason = `its format is ${format}, this version reads ${JOURNAL_FORMAT}`
  return new UnknownFormatRefusal(
    createFault(
      'format-unknown',
      formatUnusableJournal(path, reason),
      `install the version of modekeep that made it, ${GIVE_UP_RESTORE_REMEDY}`,
    ),
  )
}

function formatUnusableJournal(path: string, reason: string): string {
  return `the ownership journal ${path} cannot be used (${reason}), so nothing more is changed`
}

const SQLITE_CORRUPT = 11
const SQLITE_FULL = 13
const SQLITE_NOTADB = 26

/** Returns whether SQLite reached its size limit or the disk is full. */
export function isDatabaseFullError(error: unknown): boolean {
  return getErrno(error) === 'ERR_SQLITE_ERROR' && getPrimarySqliteCode(error) === SQLITE_FULL
}

/** Returns whether the file is damaged. An undefined cause means that the journal found invalid content itself. */
export function isDatabaseCorruptError(cause: unknown): boolean {
  const primary = getPrimarySqliteCode(cause)
  return primary === SQLITE_CORRUPT || primary === SQLITE_NOTADB
}

/** The low byte is SQLite's error, the others are its variant. */
function getPrimarySqliteCode(cause: unknown): number {
  return ((cause as { errcode?: number } | undefined)?.errcode ?? SQLITE_CORRUPT) & 0xff
}
