import { expect, it } from 'vitest'
import { NumberSet } from '../../../src/ownership/journal/acl-table.ts'

it('a number set has exactly the added numbers', () => {
  const numbers = [0, 1, 7, 8, 1023, 1024, 1025, 4096, 10_000_000]
  const set = new NumberSet()
  for (const number of numbers) {
    expect(set.has(number)).toBe(false)
    set.add(number)
  }
  for (const number of numbers) expect(set.has(number)).toBe(true)
  for (const number of [2, 6, 9, 1022, 1026, 9_999_999, 10_000_001, 2 ** 32 - 1]) expect(set.has(number)).toBe(false)
})
