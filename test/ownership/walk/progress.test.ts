import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { Progress } from '../../../src/ownership/walk/progress.ts'
import type { WalkCounts } from '../../../src/ownership/walk/report.ts'

let told: WalkCounts[]
let progress: Progress
beforeEach(() => {
  vi.useFakeTimers()
  told = []
  progress = new Progress((counts) => told.push(counts))
})
afterEach(() => {
  vi.useRealTimers()
})

it('tells nothing of a walk that takes less than a second', () => {
  vi.advanceTimersByTime(999)
  progress.tell({ visited: 5, changed: 4 })
  expect(told).toEqual([])
})

it('tells once a second, however often it is told', () => {
  for (let visited = 1; visited <= 30; visited++) {
    vi.advanceTimersByTime(100)
    progress.tell({ visited, changed: 0 })
  }
  expect(told.map(({ visited }) => visited)).toEqual([10, 20, 30])
})
