import type { InodeRecord } from './record.ts'

export const FORMAT = 1

export const SCHEMA = `
  CREATE TABLE IF NOT EXISTS journal (format INTEGER NOT NULL, volume TEXT NOT NULL);
  CREATE TABLE IF NOT EXISTS inodes (
    inode INTEGER NOT NULL, born INTEGER NOT NULL, path BLOB NOT NULL,
    uid INTEGER NOT NULL, gid INTEGER NOT NULL, mode INTEGER NOT NULL, capability BLOB,
    modified INTEGER NOT NULL, size INTEGER NOT NULL,
    seen_gid INTEGER NOT NULL, seen_mode INTEGER NOT NULL, seen_whole INTEGER NOT NULL,
    meant_gid INTEGER NOT NULL, meant_mode INTEGER NOT NULL,
    after_gid INTEGER NOT NULL, after_mode INTEGER NOT NULL,
    forfeited INTEGER NOT NULL,
    batch INTEGER NOT NULL,
    PRIMARY KEY (inode, born)
  ) WITHOUT ROWID;
  -- Batches of which it is not known that all changes were made: the one at work, and those of processes that died.
  CREATE TABLE IF NOT EXISTS unsettled (batch INTEGER PRIMARY KEY AUTOINCREMENT);
`

// What an inode was when it was first recorded is never recorded again.
export const RECORD = `
  INSERT INTO inodes VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)
  ON CONFLICT DO UPDATE SET
    modified = excluded.modified, size = excluded.size, batch = excluded.batch,
    seen_gid = excluded.seen_gid, seen_mode = excluded.seen_mode, seen_whole = excluded.seen_whole,
    meant_gid = excluded.meant_gid, meant_mode = excluded.meant_mode,
    after_gid = excluded.after_gid, after_mode = excluded.after_mode, forfeited = excluded.forfeited
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

/** @param unsettled the batches whose changes are not known to be made */
export function toRecord(row: Record<string, unknown>, unsettled: ReadonlySet<bigint>): InodeRecord {
  const ownership = (gid: string, mode: string) => ({ gid: Number(row[gid]), mode: Number(row[mode]) })
  return {
    inode: BigInt.asUintN(64, row.inode as bigint),
    born: row.born as bigint,
    path: row.path as Uint8Array,
    uid: Number(row.uid),
    before: ownership('gid', 'mode'),
    capability: row.capability as Uint8Array | null,
    modified: row.modified as bigint,
    size: row.size as bigint,
    seen: ownership('seen_gid', 'seen_mode'),
    seenWhole: Number(row.seen_whole) === 1,
    meant: ownership('meant_gid', 'meant_mode'),
    after: ownership('after_gid', 'after_mode'),
    forfeited: Number(row.forfeited) === 1,
    settled: !unsettled.has(row.batch as bigint),
  }
}
