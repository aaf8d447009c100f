import { describe, expect, it } from 'vitest'
import { progressText } from '../../../src/operator/text/progress.ts'

const facts = { verb: 'apply', visited: 50_000, changed: 40_000, total: 200_000, elapsed: 2000 }

describe('how far a walk is', () => {
  it('is a bar with what is done, the rate and the remaining time', () => {
    expect(progressText(facts, 120)).toBe(
      'apply [#####---------------]  25%  50,000 of 200,000, 40,000 changed, 25,000/s, 6 s left',
    )
  })

  it('is shorter on a narrow terminal, and never longer than that', () => {
    expect(progressText(facts, 60)).toBe('apply  25%  50,000 of 200,000, 6 s left')
    for (let width = 0; width < 130; width++) expect(progressText(facts, width).length).toBeLessThanOrEqual(width)
  })

  it('promises nothing where the total is not known, or was exceeded', () => {
    const plain = 'apply: 50,000 looked at, 40,000 changed, 25,000/s'
    expect(progressText({ ...facts, total: undefined }, 120)).toBe(plain)
    expect(progressText({ ...facts, total: 49_999 }, 120)).toBe(plain)
  })

  it.each([
    [59, '59 s left'],
    [61, '1 min 1 s left'],
    [3660, '1 h 1 min left'],
  ])('has %i seconds as %s', (seconds, text) => {
    expect(progressText({ ...facts, visited: 1000, total: 1000 + seconds * 1000, elapsed: 1000 }, 120)).toContain(text)
  })
})
