import fc from 'fast-check'
import { expect, it } from 'vitest'
import { formatLogLine } from '../../src/log/call-log.ts'

const COMMON = { time: '2026-01-01T00:00:00.000Z', level: 'error', pid: 1, verb: 'mount', directory: '/pods/p/v' }

it('a line of the log contains a short entry completely', () => {
  const entry = { ...COMMON, steps: ['a', 'b'], inodes: { visited: 1 } }
  expect(JSON.parse(formatLogLine(entry))).toEqual(entry)
})

it('a line of the log counts the bytes cut from texts, lists and objects, and their sum', () => {
  const left = Object.fromEntries(Array.from({ length: 1000 }, (_, n) => [`reason ${n}`, { count: 1 }]))
  const entry = { ...COMMON, error: 'e'.repeat(10_000), stack: 's'.repeat(10_000), found: Array(5000).fill('f'), left }
  const line = formatLogLine(entry)
  const cut = JSON.parse(line)
  expect(cut).toMatchObject(COMMON)
  for (const text of [cut.error, cut.stack]) {
    const [, kept = '', left] = /^([es]+)… \((\d+) bytes cut\)$/.exec(text) ?? []
    expect(kept.length + Number(left)).toBe(10_000)
  }
  expect(cut.found.at(-1)).toBe(`… (${5000 - cut.found.length + 1} more)`)
  expect(cut.left['…']).toBe(`${1000 - Object.keys(cut.left).length + 1} more`)
  expect(cut.cut + Buffer.byteLength(line) - `,"cut":${cut.cut}`.length).toBe(Buffer.byteLength(JSON.stringify(entry)))
})

it('a line of the log is JSON of at most 4 KiB for every entry', () => {
  const text = fc.tuple(fc.string({ unit: 'binary', maxLength: 4 }), fc.integer({ min: 0, max: 3000 }))
  const value = fc.oneof(text, fc.array(text, { maxLength: 9 }), fc.dictionary(fc.string(), text, { maxKeys: 9 }))
  const told = (entry: unknown): unknown => {
    if (typeof entry !== 'object' || entry === null) return entry
    if (!Array.isArray(entry)) return Object.fromEntries(Object.entries(entry).map(([key, item]) => [key, told(item)]))
    const [part, times] = entry
    return typeof part === 'string' && typeof times === 'number' ? part.repeat(times) : entry.map(told)
  }
  fc.assert(
    fc.property(fc.dictionary(fc.string(), value, { maxKeys: 20 }), (facts) => {
      const line = formatLogLine({ ...(told(facts) as object), ...COMMON })
      expect(Buffer.byteLength(`${line}\n`)).toBeLessThanOrEqual(4096)
      expect(line.includes('\n')).toBe(false)
      JSON.parse(line)
    }),
    { numRuns: 100 },
  )
})

it.each([1, 10, 100, 1000, 10_000])('a line of the log keeps as many of %i facts as fit', (count) => {
  const facts = Object.fromEntries(Array.from({ length: count }, (_, n) => [`${'k'.repeat(100)}${n}`, 'v'.repeat(500)]))
  expect(Buffer.byteLength(formatLogLine({ ...COMMON, ...facts }))).toBeLessThan(4096)
})
