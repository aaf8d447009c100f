import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { Progress } from '../../../src/ownership/walk/progress.ts'
import type { WalkCounts } from '../../../src/ownership/walk/report.ts'
import { changedOf, countsIn, sharedSize, visitedOf } from '../../../src/ownership/workers/messages.ts'

let told: WalkCounts[]
let progress: Progress
beforeEach(() => {
  vi.useFakeTimers()
  told = []
  progress = new Progress((counts) => told.push(counts))
})
afterEach(() => {
  progress.end()
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

it('adds up what several threads and the one before them have done', () => {
  const shared = new Int32Array(sharedSize(2))
  progress.watch(() => {
    const { visited, changed } = countsIn(shared, 2)
    return { visited: 100 + visited, changed: 50 + changed }
  })
  shared.set([7], visitedOf(0))
  shared.set([6], changedOf(0))
  shared.set([20], visitedOf(1))
  shared.set([1], changedOf(1))
  vi.advanceTimersByTime(1000)
  expect(told).toEqual([{ visited: 127, changed: 57 }])
  progress.end()
  vi.advanceTimersByTime(5000)
  expect(told).toHaveLength(1)
})
