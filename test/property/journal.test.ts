import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { DatabaseSync } from 'node:sqlite'
import fc from 'fast-check'
import { afterAll, describe, expect, it } from 'vitest'
import { Refusal } from '../../src/errors/refusal.ts'
import { linuxHost } from '../../src/kernel/linux/index.ts'
import type { InodeRecord } from '../../src/ownership/inode/record.ts'
import { encodeInodeKeys } from '../../src/ownership/journal/codec.ts'
import { LOG_MARK_SUFFIX } from '../../src/ownership/journal/file-names.ts'
import { Journal } from '../../src/ownership/journal/journal.ts'
import { corpusOf } from './corpus.ts'
import { type Damage, damaged, damages } from './damage.ts'
import { holds, runs } from './holds.ts'
import { inodeBatch } from './inode-records.ts'

const VOLUME = '2f3c-2-18f0'
/** Files that may be damaged, and all that a call leaves. */
const DAMAGED_SUFFIXES = ['', '-wal'] as const
const SUFFIXES = [...DAMAGED_SUFFIXES, LOG_MARK_SUFFIX] as const
type Files = Partial<Record<(typeof SUFFIXES)[number], Buffer>>

const top = fs.mkdtempSync(`${tmpdir()}/modekeep-property-`)
afterAll(() => fs.rmSync(top, { recursive: true }))

/** The same records in every run: it is the damage that is random. */
const [BATCHES = []] = fc.sample(
  inodeBatch(90).map((records) => [0, 30, 60].map((start) => records.slice(start, start + 30))),
  { seed: 1, numRuns: 1 },
)
/** Some inodes are recorded twice: what they were at first must stay. */
const AGAIN = BATCHES[0]?.slice(0, 10).map((record) => ({ ...record, after: { gid: 7, mode: 0o640 } })) ?? []
const VERSIONS = new Map<string, InodeRecord[]>()
for (const record of [...BATCHES.flat(), ...AGAIN]) {
  VERSIONS.set(keyOf(record), [...(VERSIONS.get(keyOf(record)) ?? []), record])
}

function keyOf({ inode, born }: Pick<InodeRecord, 'inode' | 'born'>): string {
  return `${inode} ${born}`
}

/** A journal's files in the states in which a call can find them. */
const STATES: Readonly<Record<string, Files>> = {
  'in its write-ahead log alone': made(VOLUME, { isClosed: false, isFolded: false }),
  'as a walk leaves it': made(VOLUME, { isClosed: true, isFolded: false }),
  'searched by a second walk': made(VOLUME, { isClosed: true, isFolded: true }),
  'searched by a walk that died': made(VOLUME, { isClosed: false, isFolded: true }),
}

function made(volume: string, { isClosed, isFolded }: { isClosed: boolean; isFolded: boolean }): Files {
  const path = `${top}/made.db`
  const journal = Journal.open(linuxHost, path, volume)
  for (const batch of [...BATCHES, AGAIN]) {
    const number = journal.append(batch)
    if (batch !== BATCHES[1]) journal.settle(number)
  }
  if (isFolded) journal.find(encodeInodeKeys([{ inode: 0n, born: 0n }]))
  const kept = isClosed ? undefined : filesAt(path)
  journal.close()
  const files = kept ?? filesAt(path)
  for (const suffix of SUFFIXES) fs.rmSync(path + suffix, { force: true })
  return files
}

function filesAt(path: string): Files {
  const there = SUFFIXES.filter((suffix) => fs.existsSync(path + suffix))
  return Object.fromEntries(there.map((suffix) => [suffix, fs.readFileSync(path + suffix)]))
}

function put(files: Files): string {
  const path = `${top}/journal.db`
  for (const suffix of [...SUFFIXES, '-shm']) fs.rmSync(path + suffix, { force: true, recursive: true })
  for (const [suffix, content] of Object.entries(files)) fs.writeFileSync(path + suffix, content)
  return path
}

/** Asks for everything a walk or a restore asks for. @returns how many inodes were found, or the refusal */
function used(files: Files, reading: boolean): number | Refusal {
  const path = put(files)
  let journal: Journal | undefined
  try {
    journal = (reading ? Journal.openForReading : Journal.open)(linuxHost, path, VOLUME, true)
    const found = journal
      .find(encodeInodeKeys([...VERSIONS.values()].flatMap(([record]) => record ?? [])))
      .flatMap((record) => (record && journal ? journal.decode(record, record.settled) : []))
    for (const record of [...found, ...journal.readUnfinished()]) expectVersion(record)
    journal.isEmpty()
    if (!reading) {
      journal.settle(journal.append(AGAIN))
      journal.forget(encodeInodeKeys(found.slice(0, 3)))
      journal.confirm()
    }
    return found.length
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    expect(error.message).toMatch(
      /^the ownership journal .*journal\.db cannot be used \(.+\), so nothing more is changed: /s,
    )
    return error
  } finally {
    close(journal)
  }
}

/** What cannot be used may fail to close too, in words. */
function close(journal: Journal | undefined): void {
  try {
    journal?.close()
  } catch (error) {
    expect((error as { code?: string }).code).toBe('ERR_SQLITE_ERROR')
  }
}

/** What a restore will put back is what the inode was, to the bit. */
function expectVersion(record: InodeRecord): void {
  const versions = (VERSIONS.get(keyOf(record)) ?? []).map((one) => ({ ...one, settled: record.settled }))
  expect(versions).toContainEqual(record)
}

/** A damage of one of a journal's files, or a file from elsewhere in its place. */
interface Case {
  state: string
  file: (typeof SUFFIXES)[number]
  damage: Damage
  reading: boolean
}
const cases = fc.record({
  state: fc.constantFrom(...Object.keys(STATES)),
  file: fc.constantFrom(...DAMAGED_SUFFIXES),
  damage: damages,
  reading: fc.boolean(),
})

function expectPromises({ state, file, damage, reading }: Case): number | Refusal {
  const files = { ...STATES[state] }
  const content = files[file]
  if (content) files[file] = damaged(content, damage)
  return used(files, reading)
}

describe('a journal', () => {
  it.each(Object.keys(STATES))('%s, undamaged, has all records', (state) => {
    expect(used(STATES[state] ?? {}, true)).toBe(VERSIONS.size)
    expect(used(STATES[state] ?? {}, false)).toBe(VERSIONS.size)
  })

  it.each(corpusOf<Case>('journal'))(
    'that is damaged is refused or returns only correct records: %s',
    (_name, input) => {
      expectPromises(input)
    },
  )

  it('that is damaged is refused or returns only correct records', () => {
    let refused = 0
    holds(cases, (input) => void (expectPromises(input) instanceof Refusal && refused++), 400)
    expect(refused).toBeGreaterThan(runs(40))
  })

  it("with another journal's log is refused or returns only correct records", () => {
    const others = [true, false].map((isFolded) => made('another', { isClosed: false, isFolded }))
    for (const mine of Object.values(STATES)) {
      for (const { '-wal': log, '': main } of [...others, ...Object.values(STATES)]) {
        used({ ...mine, ...(log && { '-wal': log }) }, true)
        used({ ...(mine['-wal'] && { '-wal': mine['-wal'] }), ...(main && { '': main }) }, true)
      }
    }
  })

  it.each([
    ['a row has another type', "UPDATE log SET records = 'text' || hex(records)"],
    ['a batch has no bytes', 'UPDATE log SET records = zeroblob(0)'],
    ['a batch is missing', 'DELETE FROM log WHERE batch = 2'],
    ['the first batch is missing', 'DELETE FROM log WHERE batch = 1'],
    ['a batch has another number', 'UPDATE log SET batch = 77 WHERE batch = 2'],
    [
      'a mode was changed by hand',
      "UPDATE log SET records = CAST(substr(records, 1, 32) || x'ff01' || substr(records, 35) AS BLOB)",
    ],
    ['two batches are swapped', 'UPDATE log SET batch = 50 - batch'],
    ['a table is missing', 'DROP TABLE log'],
    ['a table is a view', 'DROP TABLE log; CREATE VIEW log AS SELECT 1 AS batch, 2 AS records, 3 AS sum'],
    ['an ACL is missing', 'DELETE FROM acls WHERE number = 3'],
    ['all ACLs are missing', 'DELETE FROM acls'],
    ['an ACL was changed by hand', 'UPDATE acls SET acl = zeroblob(length(acl)) WHERE length(acl) > 0'],
    ['two ACLs are swapped', 'UPDATE acls SET number = 1000000 - number'],
    ['an ACL has another type', "UPDATE acls SET acl = 'text'"],
    ['an ACL has the hash of another', "UPDATE acls SET hash = 'x' || hash"],
    ['the table of ACLs is missing', 'DROP TABLE acls'],
    ['its log is text', "INSERT INTO log (batch, records, sum) VALUES (99, 'text', 0)"],
    ['its format is text', "UPDATE journal SET format = 'x'"],
    ['it has two volumes', "INSERT INTO journal VALUES (4, 'another', NULL)"],
  ])('is refused or returns only correct records if %s', (_what, sql) => {
    for (const reading of [true, false]) {
      const path = put(STATES['searched by a second walk'] ?? {})
      const database = new DatabaseSync(path)
      database.exec(sql)
      database.close()
      used(filesAt(path), reading)
    }
  })
})
