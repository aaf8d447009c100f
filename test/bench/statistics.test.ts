import { describe, expect, it } from 'vitest'
import { aligned, duration, markdownTable } from '../../bench/columns.ts'
import { inOrder, median } from '../../bench/statistics.ts'

describe('a median', () => {
  it('is the middle value of any order, and one outlier does not move it', () => {
    expect(median([9, 1, 5])).toBe(5)
    expect(median([900, 1, 5])).toBe(5)
    expect(median([10, 9])).toBe(9.5)
    expect(median([100, 20, 3, 1000])).toBe(60)
  })

  it('of no values is an error', () => {
    expect(() => median([])).toThrow('no values')
  })
})

it('the benchmark reverses the order of every second round', () => {
  expect([0, 1, 2].map((round) => inOrder(['a', 'b', 'c'], round).join(''))).toEqual(['abc', 'cba', 'abc'])
})

it('a printed duration has a unit and about three digits', () => {
  expect([0.5, 42.14, 999, 1000, 12_340].map(duration)).toEqual(['0.50 ms', '42.1 ms', '999 ms', '1.00 s', '12.3 s'])
})

const TABLE = [
  ['files', '10', '1,000'],
  ['a name', '1.00 s', '2'],
]

it('the columns of a printed table are aligned', () => {
  expect(aligned(TABLE)).toEqual(['files       10  1,000', 'a name  1.00 s      2'])
})

it('a Markdown table has a header', () => {
  expect(markdownTable(TABLE)).toEqual(['| files | 10 | 1,000 |', '| --- | --- | --- |', '| a name | 1.00 s | 2 |'])
})
