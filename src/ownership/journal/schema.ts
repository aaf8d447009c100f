export const FORMAT = 2
/** Without checksums. */
export const UNSEALED = 1

const INODES = `
    inode INTEGER NOT NULL, born INTEGER NOT NULL, first BLOB NOT NULL, last BLOB NOT NULL, batch INTEGER NOT NULL,
    first_sum INTEGER, last_sum INTEGER, PRIMARY KEY (inode, born)
`

export const SEAL = `
  ALTER TABLE log ADD COLUMN sum INTEGER;
  ALTER TABLE inodes ADD COLUMN first_sum INTEGER;
  ALTER TABLE inodes ADD COLUMN last_sum INTEGER;
  UPDATE journal SET format = ${FORMAT};
`

/** For a process that only looks. */
export const OWN_INODES = `CREATE TEMP TABLE inodes (${INODES}) WITHOUT ROWID`

/** For a process that finds a file in which nothing was made yet. */
export const OWN_NOTHING = `
  CREATE TEMP TABLE log (batch INTEGER PRIMARY KEY, records BLOB NOT NULL, sum INTEGER);
  CREATE TEMP TABLE inodes (${INODES}) WITHOUT ROWID;
  CREATE TEMP TABLE unsettled (batch INTEGER PRIMARY KEY);
`

export const OWN_END = `
  DROP TABLE IF EXISTS temp.log;
  DROP TABLE IF EXISTS temp.inodes;
  DROP TABLE IF EXISTS temp.unsettled;
`

export const SETTINGS = `
  PRAGMA page_size = 16384;
  PRAGMA journal_mode = WAL;
  PRAGMA synchronous = FULL;
`

export const SCHEMA = `
  CREATE TABLE IF NOT EXISTS journal (format INTEGER NOT NULL, volume TEXT NOT NULL);
  -- Batches as they came, many records in one value: a first walk only ever appends.
  CREATE TABLE IF NOT EXISTS log (batch INTEGER PRIMARY KEY, records BLOB NOT NULL, sum INTEGER);
  -- The log's records by inode, made when somebody looks for one.
  CREATE TABLE IF NOT EXISTS inodes (${INODES}) WITHOUT ROWID;
  -- Batches of which it is not known that all changes were made: those at work, and those of processes that died.
  CREATE TABLE IF NOT EXISTS unsettled (batch INTEGER PRIMARY KEY AUTOINCREMENT);
`

// What an inode was when it was first recorded is never recorded again.
export const FOLD = `
  INSERT INTO inodes VALUES (?,?,?,?,?,?,?)
  ON CONFLICT DO UPDATE SET last = excluded.last, batch = excluded.batch, last_sum = excluded.last_sum
`

export const PRUNE = 'DELETE FROM unsettled WHERE batch NOT IN (SELECT batch FROM inodes)'

const SQLITE_CORRUPT = 11
const SQLITE_NOTADB = 26

/** Without a cause it is the journal's own content that does not fit. */
export function isCorrupt(cause: unknown): boolean {
  const code = (cause as { errcode?: number } | undefined)?.errcode
  // The low byte is the error, the rest its variety.
  const primary = (code ?? SQLITE_CORRUPT) & 0xff
  return primary === SQLITE_CORRUPT || primary === SQLITE_NOTADB
}

// SQLite's integers are signed; inode numbers use all 64 bits on some file systems.
export function signed(inode: bigint): bigint {
  return BigInt.asIntN(64, inode)
}
