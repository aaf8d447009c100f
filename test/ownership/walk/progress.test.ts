import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { Progress } from '../../../src/ownership/walk/progress.ts'
import { mergeReports, newReport, type WalkCounts } from '../../../src/ownership/walk/report.ts'

let told: WalkCounts[]
let progress: Progress
beforeEach(() => {
  vi.useFakeTimers()
  told = []
  progress = new Progress((counts) => told.push(counts))
})
afterEach(() => {
  progress[Symbol.dispose]()
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
  const reports = [newReport(), newReport(), newReport()]
  progress.watch(() => mergeReports(reports))
  for (const [index, [visited, changed]] of [
    [100, 50],
    [7, 6],
    [20, 1],
  ].entries()) {
    Object.assign(reports[index] ?? {}, { visited, changed })
  }
  vi.advanceTimersByTime(1000)
  expect(told).toEqual([{ visited: 127, changed: 57 }])
  progress[Symbol.dispose]()
  vi.advanceTimersByTime(5000)
  expect(told).toHaveLength(1)
})
