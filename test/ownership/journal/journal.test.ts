import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { DatabaseSync } from 'node:sqlite'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { Refusal } from '../../../src/errors/refusal.ts'
import type { Host } from '../../../src/kernel/host.ts'
import { type InodeRecord, NO_RECORDED_ACLS } from '../../../src/ownership/inode/record.ts'
import { encodeInodeKeys } from '../../../src/ownership/journal/codec.ts'
import { isDatabaseCorruptError } from '../../../src/ownership/journal/database.ts'
import { Journal } from '../../../src/ownership/journal/journal.ts'
import { memoryHost } from '../../memory-host/index.ts'
import { MemoryWorld } from '../../memory-host/world.ts'
import { databaseHost } from './place.ts'

const CAP = Uint8Array.of(1, 0, 0, 2, 0, 0x20, 0, 0)

function record(inode: bigint, over: Partial<InodeRecord> = {}): InodeRecord {
  return {
    inode,
    born: 7n,
    path: new Uint8Array(Buffer.from(`dir/${inode}`)),
    uid: 1000,
    before: { gid: 5, mode: 0o4755 },
    capability: undefined,
    acl: NO_RECORDED_ACLS,
    modified: 1_700_000_000_123_456_789n,
    size: 3n,
    after: { gid: 2000, mode: 0o4755 },
    seen: { gid: 5, mode: 0o4755 },
    intended: { gid: 5, mode: 0o4755 },
    capabilityIntact: true,
    forfeited: false,
    settled: false,
    ...over,
  }
}

const current = new WeakMap<Journal, bigint>()

const [ACL_BEFORE, ACL_APPLIED] = [Uint8Array.of(2, 0, 0, 0, 1), Uint8Array.of(2, 0, 0, 0, 2)]

/** As a walk with one batch at a time: what was recorded before has been made. */
function recordNext(journal: Journal, records: InodeRecord[]): void {
  const before = current.get(journal)
  if (before !== undefined) journal.settle(before)
  current.set(journal, journal.append(records))
}

/** What the batch before has made need not be remembered. */
function forget(journal: Journal, keys: BigInt64Array): void {
  const before = current.get(journal)
  if (before !== undefined) journal.settle(before)
  current.delete(journal)
  journal.forget(keys)
}

/** As a walk at its end. */
function finish(journal: Journal): void {
  const before = current.get(journal)
  if (before !== undefined) journal.settle(before)
  current.delete(journal)
  journal.confirm()
}

function find(journal: Journal, inode: bigint, born: bigint): InodeRecord | undefined {
  const [found] = journal.find(encodeInodeKeys([{ inode, born }]))
  return found && journal.decode(found, found.settled)
}

function refusalOf(work: () => unknown): Refusal {
  try {
    work()
  } catch (error) {
    expect(error).toBeInstanceOf(Refusal)
    return error as Refusal
  }
  throw new Error('nothing was refused')
}

interface Place {
  host: Host
  path: string
  remove(): void
}

const PLACES: [string, () => Place][] = [
  [
    'in a file',
    () => {
      const top = fs.mkdtempSync(`${tmpdir()}/modekeep-journal-`)
      return {
        host: databaseHost(),
        path: `${top}/journal.db`,
        remove: () => fs.rmSync(top, { recursive: true, force: true }),
      }
    },
  ],
  ['in memory', () => ({ host: memoryHost(new MemoryWorld()), path: '/journal.db', remove: () => {} })],
]

describe.each(PLACES)('a journal %s', (_where, make) => {
  let place: Place
  let open: Journal[]
  beforeEach(() => {
    place = make()
    open = []
  })
  afterEach(() => {
    for (const journal of open) journal.close()
    place.remove()
  })

  /** Opens the journal as the next process does, after the earlier one has ended at any point. */
  function next(volume = 'fs-2-3'): Journal {
    for (const journal of open) journal.close()
    open = []
    const journal = Journal.open(place.host, place.path, volume)
    open.push(journal)
    return journal
  }

  /** A process that records and dies before it can confirm. */
  function dying(...batches: InodeRecord[][]): void {
    const journal = next()
    for (const batch of batches) recordNext(journal, batch)
  }

  const unfinished = (journal: Journal) =>
    journal
      .readUnfinished()
      .map(({ inode }) => inode)
      .sort((a, b) => (a < b ? -1 : 1))
  const settled = (journal: Journal, inode: bigint) => find(journal, inode, 7n)?.settled

  it('a journal is empty at first, and after all inodes are forgotten', () => {
    const journal = next()
    expect(journal.isEmpty()).toBe(true)
    expect(find(journal, 1n, 7n)).toBeUndefined()
    expect(journal.readUnfinished()).toEqual([])
    finish(journal)
    recordNext(journal, [record(1n)])
    expect(journal.isEmpty()).toBe(false)
    forget(journal, encodeInodeKeys([record(1n)]))
    expect(journal.isEmpty()).toBe(true)
    finish(journal)
    expect(next().isEmpty()).toBe(true)
  })

  it('the journal records that a restore has begun until a walk is completed', () => {
    recordNext(next(), [record(1n)])
    expect(next().hasRestoreBegun).toBe(false)
    next().beginRestore()
    const journal = next()
    expect(journal.hasRestoreBegun).toBe(true)
    journal.beginRestore()
    expect(unfinished(journal)).toEqual([1n])
    recordNext(journal, [record(1n)])
    finish(journal)
    expect([journal.hasRestoreBegun, next().hasRestoreBegun]).toEqual([false, false])
  })

  it('the journal returns the states of inodes without ACL or privileges without reading records, and marks other inodes', () => {
    const plain = (inode: bigint, over: Partial<InodeRecord> = {}) => record(inode, { capability: undefined, ...over })
    const begun = next()
    recordNext(begun, [
      plain(1n),
      plain(2n, { capability: CAP }),
      plain(3n),
      plain(4n),
      plain(5n, { capabilityIntact: false }),
    ])
    recordNext(begun, [plain(3n, { before: { gid: 2000, mode: 0o755 }, after: { gid: 3000, mode: 0o750 } })])
    const keys = encodeInodeKeys([1n, 2n, 3n, 4n, 5n, 6n].map((inode) => ({ inode, born: 7n })))
    expect(begun.findStates(keys)[2]).toBe('wait')
    forget(begun, encodeInodeKeys([{ inode: 4n, born: 7n }]))
    expect(begun.findStates(keys)[3]).toBeUndefined()
    finish(begun)
    const { before, after } = plain(1n)
    const third = { before, after: { gid: 3000, mode: 0o750 } }
    const expected = [{ before, after }, 'other', third, undefined, 'other', undefined]
    expect(begun.findStates(keys)).toEqual(expected)
    expect(next().findStates(keys)).toEqual(expected)
    recordNext(next(), [plain(1n)])
    expect(next().findStates(keys)[0]).toBe('other')
  })

  it('a batch is settled if it was recorded together with forgotten inodes', () => {
    const journal = next()
    recordNext(journal, [record(1n)])
    forget(journal, encodeInodeKeys([record(1n)]))
    const number = journal.append([record(2n)])
    expect(unfinished(journal)).toEqual([2n])
    journal.settle(number)
    finish(journal)
    expect([unfinished(journal), unfinished(next()), find(next(), 1n, 7n)]).toEqual([[], [], undefined])
  })

  it('an inode in a batch in progress is not forgotten, because a walk can visit a moved directory twice', () => {
    const journal = next()
    const one = journal.append([record(1n), record(2n)])
    const other = journal.append([record(2n)])
    journal.settle(one)
    journal.forget(encodeInodeKeys([record(1n), record(2n)]))
    journal.settle(other)
    finish(journal)
    expect([find(journal, 1n, 7n), find(journal, 2n, 7n)?.before]).toEqual([undefined, record(2n).before])
    expect(find(next(), 2n, 7n)?.before).toEqual(record(2n).before)
  })

  it('the journal records that a restore has begun until a walk has visited every inode', () => {
    recordNext(next(), [record(1n)])
    const journal = next()
    journal.beginRestore()
    journal.confirm(false)
    expect(next().hasRestoreBegun).toBe(true)
  })

  it('a batch without records is accepted', () => {
    const journal = next()
    recordNext(journal, [])
    forget(journal, encodeInodeKeys([]))
    finish(journal)
    expect(journal.isEmpty()).toBe(true)
  })

  it('records are read back, by the next process as well', () => {
    const plain = record(1n)
    const capable = record(2n, { capability: CAP, before: { gid: 4294967294, mode: 0o7777 }, uid: 4294967294 })
    const old = record(3n, { modified: -1n, size: 2n ** 63n - 1n, seen: { gid: 0, mode: 0 }, capabilityIntact: false })
    const journal = next()
    recordNext(journal, [plain, capable, old])
    for (const r of [plain, capable, old]) expect(find(journal, r.inode, 7n)).toEqual(r)
    finish(journal)
    const later = next()
    for (const r of [plain, capable, old]) expect(find(later, r.inode, 7n)).toEqual({ ...r, settled: true })
  })

  it('the first state of an inode is recorded once, and its last state is updated', () => {
    const first = record(1n, { capability: CAP })
    const second = record(1n, {
      path: new Uint8Array(Buffer.from('moved')),
      uid: 0,
      before: { gid: 2000, mode: 0o755 },
      capability: undefined,
      acl: NO_RECORDED_ACLS,
      modified: 8n,
      size: 9n,
      seen: { gid: 2000, mode: 0o755 },
      intended: { gid: 2000, mode: 0o4755 },
      capabilityIntact: false,
      after: { gid: 3000, mode: 0o750 },
    })
    const { modified, size, seen, intended, capabilityIntact, after } = second
    const both = { ...first, modified, size, seen, intended, capabilityIntact, after }
    const journal = next()
    recordNext(journal, [first])
    recordNext(journal, [second])
    expect(find(journal, 1n, 7n)).toEqual(both)
    finish(journal)
    expect(find(journal, 1n, 7n)).toEqual({ ...both, settled: true })
    recordNext(next(), [{ ...second, capability: Uint8Array.of(9), before: { gid: 1, mode: 1 } }])
    expect(find(next(), 1n, 7n)).toEqual(both)
  })

  it('an inode whose first record has no capability has no capability in later records', () => {
    const journal = next()
    recordNext(journal, [record(1n)])
    recordNext(journal, [record(1n, { capability: CAP })])
    expect(find(journal, 1n, 7n)?.capability).toBeUndefined()
  })

  it('a forgotten inode is recorded again', () => {
    const journal = next()
    recordNext(journal, [record(1n, { capability: CAP })])
    forget(journal, encodeInodeKeys([{ inode: 1n, born: 7n }]))
    const anew = record(1n, { before: { gid: 9, mode: 0o600 } })
    recordNext(journal, [anew])
    expect(find(journal, 1n, 7n)).toEqual(anew)
  })

  it('inodes with the same number are distinguished by birth time', () => {
    const births = [0n, 1n, -1n, 1_700_000_000_000_000_000n]
    const records = births.map((born, index) => record(1n, { born, uid: index }))
    const journal = next()
    recordNext(journal, records)
    for (const r of records) expect(find(journal, 1n, r.born)).toEqual(r)
    forget(journal, encodeInodeKeys([{ inode: 1n, born: -1n }]))
    expect(births.map((born) => find(journal, 1n, born)?.uid)).toEqual([0, 1, undefined, 3])
  })

  it('inode numbers of all 64 bits are kept', () => {
    const numbers = [0n, 1n, 2n ** 53n + 1n, 2n ** 63n - 1n, 2n ** 63n, 2n ** 63n + 1n, 2n ** 64n - 2n, 2n ** 64n - 1n]
    const records = numbers.map((inode, index) => record(inode, { uid: index }))
    dying(records)
    const journal = next()
    for (const r of records) expect(find(journal, r.inode, 7n)).toEqual(r)
    expect(unfinished(journal)).toEqual(numbers)
    expect(find(journal, 2n ** 53n, 7n)).toBeUndefined()
    expect(find(journal, 2n ** 64n - 3n, 7n)).toBeUndefined()
    forget(journal, encodeInodeKeys([{ inode: 2n ** 64n - 1n, born: 7n }]))
    expect(unfinished(journal)).toEqual(numbers.slice(0, -1))
  })

  it.each<[string, Uint8Array]>([
    ['of the root', new Uint8Array()],
    ['that are no UTF-8', Uint8Array.of(0xff, 0xfe, 0x2f, 0x80, 0xc3)],
    ['with quotes and newlines', new Uint8Array(Buffer.from('a\'b"c\nd;--'))],
    ['of 4 KiB', new Uint8Array(4096).fill(0xe9)],
    ['with every byte but NUL', Uint8Array.from({ length: 255 }, (_, index) => index + 1)],
  ])('file paths %s are kept in records', (_what, path) => {
    dying([record(1n, { path })])
    expect(find(next(), 1n, 7n)?.path).toEqual(path)
    expect(
      next()
        .readUnfinished()
        .map((r) => r.path),
    ).toEqual([path])
  })

  describe('a batch is settled', () => {
    it('a batch is settled when it is confirmed or the next one is recorded, and not before', () => {
      const journal = next()
      recordNext(journal, [record(1n)])
      expect(settled(journal, 1n)).toBe(false)
      expect(unfinished(journal)).toEqual([1n])
      recordNext(journal, [record(2n)])
      expect([settled(journal, 1n), settled(journal, 2n)]).toEqual([true, false])
      expect(unfinished(journal)).toEqual([2n])
      finish(journal)
      expect([settled(journal, 1n), settled(journal, 2n)]).toEqual([true, true])
      expect(unfinished(journal)).toEqual([])
      expect(unfinished(next())).toEqual([])
    })

    it('a batch is settled on disk after the volume was synced: a crash before that leaves every batch unsettled', () => {
      dying([record(1n)], [record(2n), record(3n)])
      const journal = next()
      expect(unfinished(journal)).toEqual([1n, 2n, 3n])
      expect([1n, 2n, 3n].map((inode) => settled(journal, inode))).toEqual([false, false, false])
    })

    it('a batch is not settled on disk if the volume could not be synced', () => {
      const journal = next()
      journal.setVolumeSync(() => {
        throw new Error('EIO')
      })
      recordNext(journal, [record(1n)])
      expect(() => finish(journal)).toThrow('EIO')
      expect(unfinished(next())).toEqual([1n])
    })

    it('a batch is settled if its inode was recorded again in a second batch', () => {
      const journal = next()
      recordNext(journal, [record(1n), record(2n)])
      recordNext(journal, [record(1n)])
      expect(unfinished(journal)).toEqual([1n])
    })
  })

  describe('a batch of a crashed process', () => {
    it("a crashed process's batch survives processes that read, record other inodes and confirm", () => {
      dying([record(1n), record(2n)])
      next().confirm()
      expect(unfinished(next())).toEqual([1n, 2n])
      const other = next()
      recordNext(other, [record(3n)])
      recordNext(other, [record(4n)])
      finish(other)
      for (const reader of [() => other, next]) {
        const journal = reader()
        expect(unfinished(journal)).toEqual([1n, 2n])
        expect([1n, 2n, 3n, 4n].map((inode) => settled(journal, inode))).toEqual([false, false, true, true])
      }
    })

    it("a crashed process's batch stays unsettled until its inodes are recorded again, one by one", () => {
      dying([record(1n), record(2n)])
      const second = next()
      recordNext(second, [record(1n)])
      finish(second)
      expect(unfinished(second)).toEqual([2n])
      const third = next()
      expect([settled(third, 1n), settled(third, 2n)]).toEqual([true, false])
      recordNext(third, [record(2n)])
      finish(third)
      expect(unfinished(third)).toEqual([])
      expect(unfinished(next())).toEqual([])
    })

    it("a crashed process's batch stays unsettled until its inodes are forgotten", () => {
      dying([record(1n), record(2n)])
      const second = next()
      forget(second, encodeInodeKeys([record(1n)]))
      finish(second)
      expect(unfinished(next())).toEqual([2n])
      const third = next()
      forget(third, encodeInodeKeys([record(2n)]))
      finish(third)
      expect(unfinished(next())).toEqual([])
      expect(next().isEmpty()).toBe(true)
    })

    it('the journal keeps the unfinished batches of several crashed processes', () => {
      dying([record(1n)])
      dying([record(2n)])
      dying([record(3n)])
      expect(unfinished(next())).toEqual([1n, 2n, 3n])
      const journal = next()
      recordNext(journal, [record(2n)])
      finish(journal)
      expect(unfinished(next())).toEqual([1n, 3n])
    })

    it("a later batch is not confused with a crashed process's settled batch", () => {
      dying([record(1n)])
      const journal = next()
      recordNext(journal, [record(1n)])
      finish(journal)
      dying([record(2n)])
      const last = next()
      expect([settled(last, 1n), settled(last, 2n)]).toEqual([true, false])
    })
  })

  describe('compaction of a journal', () => {
    const MANY = 6000
    const many = (over: Partial<InodeRecord> = {}) =>
      Array.from({ length: MANY }, (_, inode) => record(BigInt(inode), over))
    const rows = () => {
      const database = place.host.openDatabase(place.path)
      const all = database.prepare('SELECT batch, length(records) AS size FROM log').all()
      database.close()
      return all.map(({ size }) => Number(size)).reduce((sum, size) => sum + size, 0)
    }

    it('compaction keeps the first and the last state of every inode', () => {
      const first = next()
      recordNext(first, many())
      finish(first)
      const once = rows()
      for (const gid of [3000, 4000, 5000]) {
        const journal = next()
        journal.find(encodeInodeKeys(many()))
        recordNext(journal, many({ before: { gid: 1, mode: 1 }, after: { gid, mode: 0o4755 } }))
        finish(journal)
      }
      expect(next().readUnfinished()).toEqual([])
      expect(rows()).toBeLessThan(once * 2.5)
      const last = next()
      for (const inode of [0n, 17n, BigInt(MANY - 1)]) {
        expect(find(last, inode, 7n)).toEqual(record(inode, { after: { gid: 5000, mode: 0o4755 }, settled: true }))
      }
    })

    it('compaction after a complete restore leaves no record, not even of a crashed process', () => {
      dying(many())
      const journal = next()
      forget(journal, encodeInodeKeys(many()))
      expect(journal.isNew()).toBe(false)
      finish(journal)
      expect([journal.isEmpty(), journal.isNew(), rows()]).toEqual([true, true, 0])
      const anew = next()
      recordNext(anew, [record(1n, { uid: 5 })])
      finish(anew)
      expect(find(next(), 1n, 7n)).toEqual(record(1n, { uid: 5, settled: true }))
    })

    it("compaction waits until a crashed process's changes are settled", () => {
      const first = next()
      recordNext(first, many())
      finish(first)
      dying([record(MANY_AND_ONE)])
      const journal = next()
      forget(journal, encodeInodeKeys(many()))
      finish(journal)
      expect(unfinished(next())).toEqual([MANY_AND_ONE])
      expect(find(next(), MANY_AND_ONE, 7n)).toEqual(record(MANY_AND_ONE))
    })
    const MANY_AND_ONE = BigInt(MANY + 1)
  })

  it('a batch of records that could not be written completely leaves no record', () => {
    const journal = next()
    recordNext(journal, [record(1n)])
    finish(journal)
    const records = [record(2n), record(1n, { size: 99n }), undefined as unknown as InodeRecord]
    expect(() => journal.append(records)).toThrow()
    const later = next()
    expect(find(later, 2n, 7n)).toBeUndefined()
    expect(find(later, 1n, 7n)).toEqual(record(1n, { settled: true }))
    expect(unfinished(later)).toEqual([])
  })

  it('a journal of another volume is refused, and not changed', () => {
    dying([record(1n)])
    const { message } = refusalOf(() => next('fs-2-4'))
    expect(message).toBe(
      `the ownership journal ${place.path} cannot be used (it belongs to volume fs-2-3), so nothing more is changed: repair the disk, or give up what could be restored by moving its directory away`,
    )
    expect(find(next(), 1n, 7n)).toEqual(record(1n))
  })

  it('the journal records the disk of its volume', () => {
    const disk = 'image 1\nimage 1-2'
    const noted = (told?: string) => {
      using journal = Journal.open(place.host, place.path, 'fs-2-3', false, { disk: told })
      return journal.disk
    }
    const read = () => {
      using journal = Journal.openForReading(place.host, place.path, 'fs-2-3')
      return journal.disk
    }
    dying([record(1n)])
    next()
    expect([read(), noted()]).toEqual([undefined, undefined])
    expect([noted(disk), read(), noted()]).toEqual([disk, disk, disk])
    expect([noted('another'), read()]).toEqual(['another', 'another'])
    expect(find(next(), 1n, 7n)).toEqual(record(1n))
  })

  it.each([[0], [1], [3], [5], [-1]])('a journal of format %i is refused for any volume name in it', (format) => {
    dying([record(1n)])
    next()
    const database = place.host.openDatabase(place.path)
    database.prepare('UPDATE journal SET format = ?').run(format)
    database.close()
    for (const volume of ['fs-2-3', 'fs-2-4']) {
      expect(refusalOf(() => next(volume)).message).toMatch(
        new RegExp(
          `^the ownership journal .* cannot be used \\(its format is ${format}, this version reads 4\\), so nothing more ` +
            'is changed: install the version of modekeep that made it, or give up what could be restored by moving',
        ),
      )
    }
  })
})

describe('a file that is not a journal', () => {
  let top: string
  let path: string
  beforeEach(() => {
    top = fs.mkdtempSync(`${tmpdir()}/modekeep-journal-`)
    path = `${top}/journal.db`
  })
  afterEach(() => fs.rmSync(top, { recursive: true, force: true }))

  const refused = () => refusalOf(() => Journal.open(databaseHost(), path, 'fs-2-3'))
  const REPAIR =
    /, so nothing more is changed: repair the disk, or give up what could be restored by moving its directory away$/

  it('a text file in place of the journal is refused and not changed', () => {
    const text = 'this is no database, and a long enough text to be read as one'.repeat(20)
    fs.writeFileSync(path, text)
    const refusal = refused()
    expect(refusal.message).toMatch(REPAIR)
    expect(refusal.cause).toMatchObject({ code: 'ERR_SQLITE_ERROR', errcode: 26 })
    expect(fs.readFileSync(path, 'utf8')).toBe(text)
  })

  it.each<[string, () => void]>([
    ['a directory', () => fs.mkdirSync(path)],
    ['in no directory', () => fs.rmdirSync(top)],
  ])('a journal path that is %s is refused without a hint at the disk', (_what, make) => {
    make()
    expect(refused().message).toMatch(
      /cannot be used \(.*\), so nothing more is changed: remove the cause, and the call is repeated$/,
    )
  })

  it('a foreign database with a table of the same name is refused', () => {
    const database = new DatabaseSync(path)
    database.exec("CREATE TABLE journal (entry TEXT); INSERT INTO journal VALUES ('dear diary')")
    database.close()
    expect(refused().message).toMatch(/its format is undefined, this version reads 4/)
  })

  it('a foreign database is refused and not written to', () => {
    const database = new DatabaseSync(path)
    database.exec('CREATE TABLE log (entry TEXT)')
    database.close()
    const before = fs.readFileSync(path)
    expect(refused().message).toMatch(/it is a database of something else/)
    expect(fs.readFileSync(path).equals(before)).toBe(true)
  })

  it('a journal of an unknown format is not written to', () => {
    const database = new DatabaseSync(path)
    database.exec("CREATE TABLE journal (format INTEGER, volume TEXT); INSERT INTO journal VALUES (5, 'fs-2-3')")
    database.close()
    const before = fs.readFileSync(path)
    expect(refused().message).toMatch(/its format is 5, this version reads 4/)
    expect(fs.readFileSync(path).equals(before)).toBe(true)
  })
})

it.each<[string, unknown, boolean]>([
  ['its content', undefined, true],
  ['SQLITE_CORRUPT', { errcode: 11 }, true],
  ['SQLITE_NOTADB', { errcode: 26 }, true],
  ['SQLITE_CORRUPT_SEQUENCE, whose low byte is SQLITE_CORRUPT', { errcode: 523 }, true],
  ['SQLITE_CORRUPT_INDEX', { errcode: 779 }, true],
  ['SQLITE_BUSY', { errcode: 5 }, false],
  ['SQLITE_READONLY', { errcode: 8 }, false],
  ['SQLITE_FULL', { errcode: 13 }, false],
  ['SQLITE_CANTOPEN', { errcode: 14 }, false],
])('a journal that fails with %s is damaged: %#', (_what, cause, is) => {
  expect(isDatabaseCorruptError(cause)).toBe(is)
})

describe('the baseline of a journal', () => {
  const open = (host: Host) => Journal.open(host, '/journal.db', 'v')

  it("the baseline is the target of each inode's last change, and survives later changes, compaction and reopening", () => {
    const host = memoryHost(new MemoryWorld())
    const acl = { before: ACL_BEFORE, seen: ACL_BEFORE, after: ACL_APPLIED }
    {
      using journal = open(host)
      recordNext(journal, [record(1n), record(2n, { acl, capability: CAP })])
      finish(journal)
      journal.setBaseline()
    }
    const baselines = [
      { gid: 2000, mode: 0o4755, acl: undefined },
      { gid: 2000, mode: 0o4755, acl: ACL_APPLIED },
    ]
    for (const gid of [3000, 4000]) {
      using journal = open(host)
      const next = [1n, 2n].map((inode) => find(journal, inode, 7n) as InodeRecord)
      expect(next.map(({ baseline }) => baseline)).toEqual(baselines)
      recordNext(journal, [
        ...next.map((one) => ({ ...one, after: { gid, mode: 0o600 }, acl: NO_RECORDED_ACLS })),
        record(3n),
      ])
      finish(journal)
    }
    using journal = open(host)
    for (const [index, inode] of [1n, 2n].entries()) {
      const found = find(journal, inode, 7n)
      expect(found).toMatchObject({ before: { gid: 5 }, after: { gid: 4000 }, baseline: baselines[index] })
    }
    expect(find(journal, 3n, 7n)?.baseline).toBeUndefined()
    expect(find(journal, 2n, 7n)).toMatchObject({ capability: CAP })
    expect(journal.findStates(encodeInodeKeys([1n, 3n].map((inode) => ({ inode, born: 7n }))))).toEqual([
      'other',
      expect.anything(),
    ])
  })

  it('an empty journal has no baseline', () => {
    using journal = open(memoryHost(new MemoryWorld()))
    journal.setBaseline()
    expect(journal.isEmpty()).toBe(true)
  })
})
