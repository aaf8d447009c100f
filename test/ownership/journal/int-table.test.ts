import fc from 'fast-check'
import { expect, it } from 'vitest'
import { getHighWord, IntHashTable } from '../../../src/ownership/journal/int-table.ts'
import { holds } from '../../property/holds.ts'

type Key = [a: number, b: number, c: number, d: number]

const word = fc.oneof(
  fc.integer({ min: 0, max: 3 }),
  fc.constantFrom(-(2 ** 31), -1, 2 ** 31 - 1, 2 ** 32 - 1),
  fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 }),
)
const key: fc.Arbitrary<Key> = fc.oneof(
  fc.tuple(fc.integer({ min: 0, max: 300 }), fc.constant(0), fc.constant(0), fc.constant(0)),
  fc.tuple(word, word, word, word),
)
const operations = fc.array(fc.record({ key, value: fc.integer({ min: -9, max: 9 }), deletes: fc.boolean() }), {
  maxLength: 3000,
  size: 'max',
})

it('an integer hash table equals a Map after any sequence of insertions, changes and deletions', () => {
  const toText = ([a, b, c, d]: Key) => [a | 0, b | 0, c | 0, d | 0].join(' ')
  holds(
    operations,
    (list) => {
      const table = new IntHashTable(1, 1)
      const model = new Map<string, number[]>()
      for (const [index, { key, value, deletes }] of list.entries()) {
        const entry = table.find(...key)
        expect(entry !== undefined).toBe(model.has(toText(key)))
        if (deletes && entry !== undefined) {
          table.delete(entry)
          model.delete(toText(key))
        } else {
          const written = entry ?? table.insert(...key)
          if (entry === undefined) expect([table.get(written, 0), table.getSparse(written, 0)]).toEqual([0, 0])
          const sparse = index % 5 === 0 ? value : 0
          table.set(written, 0, value)
          table.setSparse(written, 0, sparse)
          model.set(toText(key), [value, sparse])
        }
        expect(table.size).toBe(model.size)
      }
      const read = new Map<string, number[]>()
      for (const { key } of list) {
        const entry = table.find(...key)
        if (entry === undefined) continue
        expect(table.hasKey(entry, ...key)).toBe(true)
        expect(toText([0, 1, 2, 3].map((at) => table.getKey(entry, at)) as Key)).toBe(toText(key))
        expect(entry).toBeLessThan(table.end)
        read.set(toText(key), [table.get(entry, 0), table.getSparse(entry, 0)])
      }
      expect(read).toEqual(model)
    },
    60,
  )
})

it('an integer hash table reuses deleted entries, so that the table of a changing set stays small', () => {
  const table = new IntHashTable(1)
  for (let number = 0; number < 100_000; number++) {
    table.set(table.insert(number, number), 0, number)
    if (number >= 100) table.delete(table.find(number - 100, number - 100) ?? -1)
  }
  expect([table.size, table.end]).toEqual([100, 101])
  for (let number = 99_900; number < 100_000; number++)
    expect(table.get(table.find(number, number) ?? -1, 0)).toBe(number)
  expect(table.find(99_899, 99_899)).toBeUndefined()
})

it('an integer hash table of 200,000 numbers of 53 bits finds each number, and no other number', () => {
  const numbers = Array.from({ length: 200_000 }, (_, index) => 2 ** 53 - 1 - index * 2_000_003)
  const table = new IntHashTable(0)
  const find = (number: number) => table.find(number | 0, getHighWord(number))
  for (const [index, number] of numbers.entries()) {
    if (find(number) !== undefined) expect.unreachable()
    expect(table.insert(number | 0, getHighWord(number))).toBe(index)
    if (find(numbers[index >> 1] as number) !== index >> 1) expect.unreachable()
  }
  expect(table.size).toBe(numbers.length)
  for (const number of numbers) if (find(number + 1) !== undefined) expect.unreachable()
})
