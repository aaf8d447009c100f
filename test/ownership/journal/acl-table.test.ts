import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { DatabaseSync } from 'node:sqlite'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { Refusal } from '../../../src/errors/refusal.ts'
import type { InodeRecord } from '../../../src/ownership/inode/record.ts'
import { encodeInodeKeys } from '../../../src/ownership/journal/codec.ts'
import { Journal } from '../../../src/ownership/journal/journal.ts'
import { databaseHost, recordWith } from './place.ts'

const host = databaseHost()
let top: string
let path: string
let open: Journal[]
beforeEach(() => {
  top = fs.mkdtempSync(`${tmpdir()}/modekeep-acls-`)
  path = `${top}/journal.db`
  open = []
})
afterEach(() => {
  for (const journal of open) journal.close()
  fs.rmSync(top, { recursive: true, force: true })
})

type Acl = Uint8Array | undefined
type Acls = [before?: Acl, seen?: Acl, after?: Acl]

const record = (inode: number, [before, seen, after]: Acls) => recordWith(inode, { before, seen, after })

const acl = (fill: number, length = 44) => new Uint8Array(length).fill(fill)

/** Opens it as the next process does. */
function next(isReading = false): Journal {
  const journal = (isReading ? Journal.openForReading : Journal.open)(host, path, 'fs-2-3')
  open.push(journal)
  return journal
}

function recorded(...batches: InodeRecord[][]): Journal {
  const journal = next()
  for (const batch of batches) journal.settle(journal.append(batch))
  journal.confirm()
  return journal
}

function aclsOf(journal: Journal, inode: number): Acls | undefined {
  const [found] = journal.find(encodeInodeKeys([{ inode: BigInt(inode), born: 7n }]))
  if (found === undefined) return undefined
  const { before, seen, after } = journal.decode(found, true).acl
  return [before, seen, after]
}

function database<T>(use: (database: DatabaseSync) => T): T {
  const database = new DatabaseSync(path)
  try {
    return use(database)
  } finally {
    database.close()
  }
}

const rows = () => database((journal) => journal.prepare('SELECT acl FROM acls ORDER BY number').all().length)

it('a journal stores each ACL once for all inodes, and a later process reads it, also in read-only mode', () => {
  recorded(
    [
      record(1, [acl(1), acl(1), acl(2)]),
      record(2, [acl(1), acl(1), acl(1)]),
      record(3, [undefined, acl(2), undefined]),
    ],
    [record(1, [acl(9), acl(2), acl(3)]), record(4, [])],
  )
  expect(rows()).toBe(4)
  for (const journal of [next(), next(true)]) {
    expect(aclsOf(journal, 1)).toEqual([acl(1), acl(2), acl(3)])
    expect(aclsOf(journal, 2)).toEqual([acl(1), acl(1), acl(1)])
    expect(aclsOf(journal, 3)).toEqual([undefined, acl(2), undefined])
    expect(aclsOf(journal, 4)).toEqual([undefined, undefined, undefined])
  }
})

it('ten thousand inodes that share an ACL of 1 KiB take only the space of their records', () => {
  const [before, after] = [acl(1, 1024), acl(2, 1024)]
  const inodes = Array.from({ length: 10_000 }, (_, inode) => record(inode, [before, before, after]))
  const batches = Array.from({ length: 20 }, (_, at) => inodes.slice(at * 500, (at + 1) * 500))
  recorded(...batches).close()
  open = []
  expect(rows()).toBe(2)
  expect(fs.readdirSync(top)).toEqual(['journal.db'])
  expect(fs.statSync(path).size / inodes.length).toBeLessThan(128)
  expect(aclsOf(next(), 9999)).toEqual([before, before, after])
})

it('an ACL is deleted with the last record that refers to it, and its space is freed', () => {
  const large = (inode: number) => acl(inode, 50_000)
  const journal = recorded([1, 2, 3, 4, 5].map((inode) => record(inode, [large(inode), large(inode), large(inode)])))
  journal.find(encodeInodeKeys([record(1, [])]))
  journal.forget(encodeInodeKeys([1, 2, 3, 4].map((inode) => record(inode, []))))
  journal.confirm()
  expect(rows()).toBe(5)
  journal.markVisited(new DataView(encodeInodeKeys([record(5, [])]).buffer))
  journal.forgetUnvisited()
  expect(rows()).toBe(1)
  expect(fs.statSync(path).size).toBeLessThan(200_000)
  for (const one of [journal, next()]) expect(aclsOf(one, 5)).toEqual([large(5), large(5), large(5)])
  journal.settle(journal.append([record(1, [large(1), large(5), large(6)])]))
  for (const one of [journal, next()]) expect(aclsOf(one, 1)).toEqual([large(1), large(5), large(6)])
  journal.forget(encodeInodeKeys([record(1, []), record(5, [])]))
  journal.confirm()
  expect(rows()).toBe(0)
})

it('an ACL of a transaction that was rolled back is written with the next record that has it', () => {
  const journal = recorded([record(1, [acl(1), acl(1), acl(1)])])
  const broken = [record(2, [acl(2), acl(3), acl(1)]), undefined as unknown as InodeRecord]
  expect(() => journal.append(broken)).toThrow()
  expect(rows()).toBe(1)
  journal.settle(journal.append([record(3, [acl(3), acl(2), acl(1)])]))
  for (const one of [journal, next()]) expect(aclsOf(one, 3)).toEqual([acl(3), acl(2), acl(1)])
})

it.each([
  ['a flipped bit in an ACL', `UPDATE acls SET acl = x'${'01'.repeat(43)}03' WHERE number = 1`],
  ['two swapped ACLs', 'UPDATE acls SET number = -number; UPDATE acls SET number = 3 + number'],
  ['an ACL of another type', "UPDATE acls SET acl = 'text' WHERE number = 2"],
  ['a changed checksum', 'UPDATE acls SET sum = sum + 1 WHERE number = 2'],
  ['a missing ACL', 'DELETE FROM acls WHERE number = 2'],
  ['no ACLs', 'DELETE FROM acls'],
  ['no table of ACLs', 'DROP TABLE acls'],
])('a journal with %s is refused at the first lookup', (_what, sql) => {
  recorded([record(1, [acl(1), acl(1), acl(2)]), record(2, [])])
  database((journal) => journal.exec(sql))
  for (const isReading of [false, true]) {
    const journal = next(isReading)
    expect(() => journal.find(encodeInodeKeys([record(2, [])]))).toThrow(Refusal)
    expect(() => journal.isEmpty()).toThrow(
      /^the ownership journal .* cannot be used \(.*[aA][cC][lL].*\), so nothing more/,
    )
  }
})

it('an ACL with the hash of another one is refused', () => {
  recorded([record(1, [acl(1), acl(1), acl(2)])])
  database((journal) => {
    const [{ hash } = {}] = journal.prepare('SELECT hash FROM acls WHERE number = 1').all()
    journal.exec("UPDATE acls SET hash = 'x' WHERE number = 1")
    journal.prepare('UPDATE acls SET hash = ? WHERE number = 2').run(hash as string)
  })
  expect(() => next().append([record(3, [acl(1), undefined, undefined])])).toThrow('an ACL is not the one of its hash')
})

it("ACLs count for the journal's quota and for its size per inode", () => {
  const journal = recorded([1, 2, 3].map((inode) => record(inode, [acl(inode, 60_000), acl(0), acl(0)])))
  expect([journal.isLargerThan(180_000), journal.isLargerThan(190_000)]).toEqual([true, false])
  expect(journal.isOvergrown(3)).toBe(false)
  journal.setQuota({ maxBytes: 600_000, reservedBytes: 600_000, reserve: () => 0 })
  const more = () => {
    for (let inode = 10; inode < 40; inode++)
      journal.append([record(inode, [acl(inode, 60_000), undefined, undefined])])
  }
  expect(more).toThrow('"stateQuota"')
  journal.setQuota(undefined)
  more()
  expect(journal.isOvergrown(33)).toBe(true)
  expect(aclsOf(journal, 39)).toEqual([acl(39, 60_000), undefined, undefined])
})

it('a journal with many large ACLs keeps few of them in memory', async () => {
  const MANY = 400
  const large = (inode: number) => {
    const bytes = acl(inode % 256, 65_536)
    bytes[0] = inode >> 8
    return bytes
  }
  const journal = next()
  for (let inode = 0; inode < MANY; inode++)
    journal.settle(journal.append([record(inode, [large(inode), large(inode), undefined])]))
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  const memory = () => {
    collect()
    return process.memoryUsage().arrayBuffers
  }
  const before = memory()
  for (let inode = 0; inode < MANY; inode++)
    expect(Buffer.compare(aclsOf(journal, inode)?.[0] ?? acl(0), large(inode))).toBe(0)
  // Swept by another thread.
  await expect.poll(() => memory() - before, { timeout: 10_000 }).toBeLessThan(8_000_000)
})
