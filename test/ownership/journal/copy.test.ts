import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { DatabaseSync } from 'node:sqlite'
import { afterEach, beforeEach, expect, it } from 'vitest'
import type { InodeRecord } from '../../../src/ownership/inode/record.ts'
import { encodeInodeKeys } from '../../../src/ownership/journal/codec.ts'
import {
  type JournalRow,
  JournalRowChecker,
  JournalSnapshot,
  writeJournalCopy,
} from '../../../src/ownership/journal/copy.ts'
import { Journal } from '../../../src/ownership/journal/journal.ts'
import { databaseHost, recordWith } from './place.ts'

const host = databaseHost()
const VOLUME = 'fs-2-3'
const PLENTY = { maxBytes: 2 ** 30, reservedBytes: 2 ** 30, reserve: () => 0 }
const LARGE = 65_536

let top: string
let path: string
beforeEach(() => {
  top = fs.mkdtempSync(`${tmpdir()}/modekeep-copy-`)
  path = `${top}/journal.db`
})
afterEach(() => fs.rmSync(top, { recursive: true, force: true }))

const record = (inode: number, acl: Uint8Array | undefined) => recordWith(inode, { before: acl, seen: acl, after: acl })

function acl(id: number, length = 44): Uint8Array {
  const bytes = new Uint8Array(length).fill(1)
  new DataView(bytes.buffer).setUint32(0, id)
  return bytes
}

/** A batch for each, of which all changes are made. */
function recordAll(inodes: readonly InodeRecord[]): void {
  using journal = Journal.open(host, path, VOLUME)
  for (const inode of inodes) journal.settle(journal.append([inode]))
  journal.confirm()
}

const copied = (rows: Iterable<JournalRow>): JournalRow[] =>
  Array.from(rows, (row) => ({ ...row, bytes: row.bytes.slice() }))

function database(sql: string): void {
  const journal = new DatabaseSync(path)
  journal.exec(sql)
  journal.close()
}

it('a copy of a journal has the same rows and ACL numbers, and accepts new records', async () => {
  recordAll([1, 2, 3, 4].map((inode) => record(inode, inode === 4 ? undefined : acl(inode % 2))))
  const other = `${top}/other.db`
  {
    using snapshot = new JournalSnapshot(host, path, VOLUME, true)
    expect(snapshot).toMatchObject({ acls: 2, batches: 4, unsettled: [] })
    await writeJournalCopy(
      host,
      other,
      VOLUME,
      { rows: copied(snapshot.rows()), unsettled: [4n], disk: 'a disk' },
      PLENTY,
    )
  }
  using one = new JournalSnapshot(host, path, VOLUME, true)
  using two = new JournalSnapshot(host, other, VOLUME, true)
  expect(copied(two.rows())).toEqual(copied(one.rows()))
  expect(two).toMatchObject({ acls: 2, batches: 4, bytes: one.bytes, unsettled: [4n], disk: 'a disk' })
  using journal = Journal.open(host, other, VOLUME, true)
  journal.settle(journal.append([record(5, acl(1)), record(6, acl(9))]))
  journal.confirm()
  const acls = [1, 2, 3, 4, 5, 6].map((inode) => {
    const [found] = journal.find(encodeInodeKeys([{ inode: BigInt(inode), born: 7n }]))
    return found && journal.decode(found, true).acl.before
  })
  expect(acls).toEqual([acl(1), acl(0), acl(1), undefined, acl(1), acl(9)])
  using three = new JournalSnapshot(host, other, VOLUME, true)
  expect(three.acls).toBe(3)
})

it('a copy of a journal has the rows of one moment while a walk writes further records', () => {
  recordAll([record(1, acl(1)), record(2, acl(2))])
  using snapshot = new JournalSnapshot(host, path, VOLUME, true)
  const before = copied(snapshot.rows())
  recordAll([record(3, acl(3))])
  {
    using journal = Journal.open(host, path, VOLUME, true)
    journal.markVisited(new DataView(encodeInodeKeys([{ inode: 3n, born: 7n }]).buffer))
    journal.forgetUnvisited()
  }
  expect(copied(snapshot.rows())).toEqual(before)
  using now = new JournalSnapshot(host, path, VOLUME, true)
  expect(now).toMatchObject({ acls: 1, batches: 1 })
})

it.each([
  ['one ACL', 'UPDATE acls SET sum = sum + 1 WHERE number = 2', 'an ACL has changed'],
  ['the hash of one', "UPDATE acls SET hash = 'x' WHERE number = 2", 'an ACL is not the one of its hash'],
  ['a batch', 'UPDATE log SET sum = sum + 1 WHERE batch = 2', 'a batch of records has changed'],
])('a journal with damage to %s is not copied', (_what, sql, reason) => {
  recordAll([record(1, acl(1)), record(2, acl(2))])
  database(sql)
  using snapshot = new JournalSnapshot(host, path, VOLUME, true)
  expect(() => copied(snapshot.rows())).toThrow(`the ownership journal ${path} cannot be used (${reason})`)
})

it('a copy of a journal with many large ACLs keeps few of them in memory', () => {
  const MANY = 400
  recordAll(Array.from({ length: MANY }, (_, inode) => record(inode, acl(inode, LARGE))))
  using snapshot = new JournalSnapshot(host, path, VOLUME, true)
  const check = new JournalRowChecker(VOLUME, MANY)
  const before = process.memoryUsage().arrayBuffers
  let most = 0
  for (const row of snapshot.rows()) {
    check.checkNext(row)
    most = Math.max(most, process.memoryUsage().arrayBuffers - before)
  }
  expect(most).toBeLessThan(4_000_000)
})

it('a copy of a journal reserves the space that its rows need, up to the quota', async () => {
  recordAll([
    ...Array.from({ length: 100 }, (_, inode) => record(inode, acl(inode, LARGE))),
    ...Array.from({ length: 1000 }, (_, inode) => record(1000 + inode, acl(1000 + inode))),
  ])
  using snapshot = new JournalSnapshot(host, path, VOLUME, true)
  const asked: number[] = []
  const give = (_size: number, wanted: number) => {
    asked.push(wanted)
    return wanted
  }
  const write = (most: number) => {
    const copy = { rows: copied(snapshot.rows()), unsettled: [], disk: undefined }
    return writeJournalCopy(host, `${top}/${most}.db`, VOLUME, copy, {
      maxBytes: most,
      reservedBytes: 100_000,
      reserve: give,
    })
  }
  await write(2 ** 30)
  expect(asked.length).toBeGreaterThan(0)
  expect(Math.max(...asked)).toBeLessThan(8 << 20)
  await expect(write(2 ** 20)).rejects.toThrow('"stateQuota"')
})
