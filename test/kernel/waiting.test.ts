import { describe, expect, it } from 'vitest'
import { computeBackOffPauseMs, computeLongestPauseMs } from '../../src/kernel/waiting.ts'

const RETRY_DELAY_LIMITS = { firstMs: 500, mostMs: 30_000 }

describe('the delay before a retry', () => {
  it('doubles from half a second to half a minute, and is random between half of its bound and its bound', () => {
    const bounds = [1, 2, 3, 4, 5, 6, 7, 8, 1000].map((failures) => [
      computeBackOffPauseMs(RETRY_DELAY_LIMITS, failures, 0),
      computeBackOffPauseMs(RETRY_DELAY_LIMITS, failures, 1),
    ])
    const most = [500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000, 30_000]
    expect(bounds).toEqual(most.map((bound) => [bound / 2, bound]))
    expect([1, 2, 3].map((failures) => computeLongestPauseMs(RETRY_DELAY_LIMITS, failures))).toEqual(most.slice(0, 3))
  })
})
