import { describe, expect, it } from 'vitest'
import { formatProgressLine } from '../../../src/cli/output/progress.ts'

const facts = { verb: 'apply', visited: 50_000, changed: 40_000, total: 200_000, elapsed: 2000 }
const million = { verb: 'restore', visited: 1_234_567, changed: 1_000_000, total: 12_345_678, elapsed: 20_000 }

describe('the progress line of a walk', () => {
  it.each([
    [
      199,
      `apply [${'#'.repeat(30)}${'-'.repeat(90)}]  25%   50,000 of 200,000   40,000 changed   25,000/s          6 s left`,
    ],
    [79, 'apply [####-------------]  25%   50,000 of 200,000   25,000/s          6 s left'],
    [59, 'apply [###-----------]  25%   50k/200k   25k/s      6s left'],
    [39, 'apply  25%   50k/200k      6s left'],
    [5, ' 25%'],
  ])('fills %i columns with all parts that fit: bar, count, rate and remaining time', (width, text) => {
    expect(formatProgressLine(facts, width)).toBe(text)
  })

  it('has bar, count, rate and remaining time at 60 columns for millions of inodes', () => {
    expect(formatProgressLine(million, 59)).toBe('restore [#------------]   9%  1.2M/12M   61k/s    3m1s left')
    expect(formatProgressLine(million, 79)).toBe(
      'restore [---------]   9%   1,234,567 of 12,345,678   61,728/s    3 min 1 s left',
    )
  })

  it('is never longer than the terminal', () => {
    for (const some of [facts, million, { ...facts, total: undefined }]) {
      for (let width = 0; width < 250; width++)
        expect(formatProgressLine(some, width).length).toBeLessThanOrEqual(width)
    }
  })

  it('keeps its length while the walk proceeds', () => {
    for (const width of [59, 79, 199]) {
      const lengths = [1, 10, 999, 10_000, 123_456, 200_000].map((visited) => {
        const text = formatProgressLine({ ...facts, visited, changed: visited, elapsed: visited / 20 }, width)
        return [text.length, text.indexOf(']')].join()
      })
      expect(new Set(lengths).size).toBe(1)
    }
  })

  it('has no bar and no remaining time if the total is unknown or was exceeded', () => {
    const plain = 'apply: 50,000 looked at, 40,000 changed, 25,000/s'
    expect(formatProgressLine({ ...facts, total: undefined }, 59)).toBe(plain)
    expect(formatProgressLine({ ...facts, total: undefined }, 39)).toBe('apply: 50,000 looked at, 25,000/s')
    expect(formatProgressLine({ ...facts, total: 49_999 }, 120)).toBe(plain)
  })

  it.each([
    [59, '59 s left', '59s left'],
    [61, '1 min 1 s left', '1m1s left'],
    [3660, '1 h 1 min left', '1h1m left'],
  ])('shows %i seconds as %s, and in short as %s', (seconds, text, short) => {
    const some = { ...facts, visited: 1000, total: 1000 + seconds * 1000, elapsed: 1000 }
    expect(formatProgressLine(some, 120)).toContain(text)
    expect(formatProgressLine(some, 59)).toContain(short)
  })
})
