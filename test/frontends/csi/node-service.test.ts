import { describe, expect, it } from 'vitest'
import { calculateAnswerDeadline } from '../../../src/frontends/csi/node-service.ts'

const within = (deadline: Date | number) => calculateAnswerDeadline(deadline) - performance.now()
const SLACK = 200

describe('a CSI call is answered', () => {
  it.each([
    ["before kubelet's two minutes have passed", 120_000, 100_000],
    ['before an earlier deadline', 60_000, 58_000],
    ['with time for the reply, however short the deadline', 2000, 1500],
    ['at once after its deadline', -5000, 0],
  ])('%s', (_what, left, expected) => {
    for (const deadline of [Date.now() + left, new Date(Date.now() + left)]) {
      expect(Math.abs(within(deadline) - expected)).toBeLessThan(SLACK)
    }
  })

  it('in time if the caller has no deadline', () => {
    expect(Math.abs(within(Number.POSITIVE_INFINITY) - 100_000)).toBeLessThan(SLACK)
  })
})
