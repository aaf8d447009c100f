import { DatabaseSync } from 'node:sqlite'
import { expect, it } from 'vitest'
import { estimateLogGrowth, JournalSizeLimiter, readDatabaseSize } from '../../../src/ownership/journal/quota.ts'
import { runTransaction } from '../../../src/ownership/journal/tables.ts'

const MIB = 2 ** 20

/** @param give what is answered to each request in turn; `asked` gets them */
function arrange(most: number, given: number, answers: number[]) {
  const database = new DatabaseSync(':memory:', { readBigInts: true })
  database.exec('PRAGMA page_size = 16384; CREATE TABLE log (records BLOB NOT NULL)')
  const insert = database.prepare('INSERT INTO log VALUES (?)')
  const room = new JournalSizeLimiter(database)
  const asked: [size: number, wanted: number][] = []
  const give = (size: number, wanted: number) => {
    asked.push([size, wanted])
    const answer = answers.shift()
    if (answer === undefined) throw new Error('no more')
    return answer
  }
  room.setQuota({ maxBytes: most, reservedBytes: given, reserve: give })
  const write = (bytes: number) => {
    const chunk = new Uint8Array(bytes)
    room.runWithQuota(estimateLogGrowth([chunk]), () => runTransaction(database, () => insert.run(chunk)))
  }
  const rows = () => Number(database.prepare('SELECT count(*) AS rows FROM log').get()?.rows)
  return { database, room, asked, write, rows, size: () => readDatabaseSize(database) }
}

it('a journal grows within its reserved space, then reserves more space once for each batch', () => {
  const { asked, write, rows, size } = arrange(100 * MIB, MIB, [2 * MIB, 2 * MIB])
  const before = size()
  while (asked.length === 0) write(100_000)
  expect(asked).toEqual([[expect.any(Number), estimateLogGrowth([new Uint8Array(100_000)])]])
  expect(asked[0]?.[0]).toBeLessThanOrEqual(before + MIB)
  expect(asked[0]?.[0]).toBeGreaterThan(before + MIB / 2)
  while (asked.length === 1) write(100_000)
  expect(size()).toBeLessThanOrEqual(before + 3 * MIB + 200_000)
  const written = rows()
  write(10)
  expect(rows()).toBe(written + 1)
})

it('the space that a journal reserves is enough for the records that it writes', () => {
  for (const bytes of [20_000, 100_000, 5 * MIB]) {
    const { asked, write, rows } = arrange(100 * MIB, 0, [estimateLogGrowth([new Uint8Array(bytes)])])
    write(bytes)
    expect([asked.length, rows()]).toEqual([1, 1])
  }
})

it('a journal writes nothing beyond its reserved space, and reserves nothing beyond its quota', () => {
  const refused = arrange(100 * MIB, 0, [])
  expect(() => refused.write(100_000)).toThrow('no more')
  expect(refused.rows()).toBe(0)
  const full = arrange(MIB, 0, Array(100).fill(MIB))
  const fill = () => {
    for (;;) full.write(100_000)
  }
  expect(fill).toThrow('database or disk is full')
  expect(full.size()).toBeLessThanOrEqual(MIB)
  expect(full.asked.length).toBe(1)
  full.room.setQuota(undefined)
  full.write(2 * MIB)
})

it('while its disk is full, a journal reserves space once for each batch', () => {
  const { asked, room } = arrange(100 * MIB, MIB, Array(10).fill(MIB))
  const full = () => {
    throw Object.assign(new Error('database or disk is full'), { code: 'ERR_SQLITE_ERROR', errcode: 13 })
  }
  expect(() => room.runWithQuota(100, full)).toThrow('disk is full')
  expect(asked).toHaveLength(1)
  const other = () => {
    throw Object.assign(new Error('disk I/O error'), { code: 'ERR_SQLITE_ERROR', errcode: 10 })
  }
  expect(() => room.runWithQuota(100, other)).toThrow('I/O error')
  expect(asked).toHaveLength(1)
})
