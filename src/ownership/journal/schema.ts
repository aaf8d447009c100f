/** Of the tables, and of the records in them (codec.ts). */
export const FORMAT = 2

const INODES = `
    inode INTEGER NOT NULL, born INTEGER NOT NULL, first BLOB NOT NULL, last BLOB NOT NULL, batch INTEGER NOT NULL,
    first_sum INTEGER NOT NULL, last_sum INTEGER NOT NULL, PRIMARY KEY (inode, born)
`

/** For a process that only looks. */
export const OWN_INODES = `CREATE TEMP TABLE inodes (${INODES}) WITHOUT ROWID`

/** For a process that finds a file in which nothing was made yet. */
export const OWN_NOTHING = `
  CREATE TEMP TABLE log (batch INTEGER PRIMARY KEY, records BLOB NOT NULL, sum INTEGER NOT NULL);
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
  CREATE TABLE journal (format INTEGER NOT NULL, volume TEXT NOT NULL);
  -- Batches as they came, many records in one value: a first walk only ever appends.
  CREATE TABLE log (batch INTEGER PRIMARY KEY, records BLOB NOT NULL, sum INTEGER NOT NULL);
  -- The log's records by inode, made when somebody looks for one.
  CREATE TABLE inodes (${INODES}) WITHOUT ROWID;
  -- Batches of which it is not known that all changes were made: those at work, and those of crashed processes.
  CREATE TABLE unsettled (batch INTEGER PRIMARY KEY AUTOINCREMENT);
`

// What an inode was when it was first recorded is never recorded again.
export const FOLD = `
  INSERT INTO inodes VALUES (?,?,?,?,?,?,?)
  ON CONFLICT DO UPDATE SET last = excluded.last, batch = excluded.batch, last_sum = excluded.last_sum
`

export const PRUNE = 'DELETE FROM unsettled WHERE batch NOT IN (SELECT batch FROM inodes)'

// SQLite's integers are signed; inode numbers use all 64 bits on some file systems.
export function signed(inode: bigint): bigint {
  return BigInt.asIntN(64, inode)
}
