import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { ProgressReporter, type WalkCounts } from '../../../src/ownership/walk/report.ts'

let told: WalkCounts[]
let progress: ProgressReporter
beforeEach(() => {
  vi.useFakeTimers()
  told = []
  progress = new ProgressReporter((counts) => told.push(counts))
})
afterEach(() => {
  vi.useRealTimers()
})

it('a walk that takes less than a second reports no progress', () => {
  vi.advanceTimersByTime(999)
  progress.report({ visited: 5, changed: 4 })
  expect(told).toEqual([])
})

it('progress is reported once a second for any number of updates', () => {
  for (let visited = 1; visited <= 30; visited++) {
    vi.advanceTimersByTime(100)
    progress.report({ visited, changed: 0 })
  }
  expect(told.map(({ visited }) => visited)).toEqual([10, 20, 30])
})
