import { spawnSync } from 'node:child_process'
import { expect } from 'vitest'
import { BINARY } from './node-directory.ts'

/** What a start of modekeep takes on an idle machine, in milliseconds. */
const USUAL_START_MS = 40
const STARTS = 5

/**
 * Expects that something took less than a limit that holds on an idle machine. On a busy one the limit is as much longer as a
 * start of modekeep takes now. What the limit tells apart must differ by more, such as a call that waits for a server for ever.
 */
export function expectInTime(tookMs: number, limitMs: number): void {
  if (tookMs < limitMs) return
  expect(tookMs).toBeLessThan((limitMs * Math.max(USUAL_START_MS, measureLongestStart())) / USUAL_START_MS)
}

function measureLongestStart(): number {
  const starts = Array.from({ length: STARTS }, () => {
    const began = performance.now()
    spawnSync(BINARY, ['init'])
    return performance.now() - began
  })
  return Math.max(...starts)
}
