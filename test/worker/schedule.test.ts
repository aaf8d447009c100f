import { describe, expect, it } from 'vitest'
import {
  computeWorkerStartDelayMs,
  findNextRunnableTask,
  type ScheduledTask,
  type StartedTask,
} from '../../src/worker/schedule.ts'

const LIMITS = { maxQuick: 2, longAfterMs: 100, maxPerKind: 4, maxPerNamespace: 3, minIdle: 0 }
const NOW = 1000

const publish = (namespace = 'shop'): ScheduledTask => ({ do: 'publish', namespace })
const unpublish: ScheduledTask = { do: 'unpublish', namespace: '' }
const stats: ScheduledTask = { do: 'stats', namespace: '' }
const many = (count: number, task: ScheduledTask, since: number): StartedTask[] =>
  Array.from({ length: count }, () => ({ ...task, startedAt: since }))
const next = (waiting: ScheduledTask[], running: StartedTask[]) => findNextRunnableTask(waiting, running, NOW, LIMITS)

const JUST = NOW - 99
const LONG = NOW - 100

describe('the next worker task', () => {
  it('is the first waiting task', () => {
    expect(next([], [])).toBe(-1)
    expect(next([publish(), unpublish], [])).toBe(0)
    expect(next([publish()], many(1, publish(), JUST))).toBe(0)
  })

  it('is none while the maximum of quick tasks runs', () => {
    expect(next([publish('x'), unpublish, stats], many(2, publish(), JUST))).toBe(-1)
  })

  it('starts while only long-running tasks run', () => {
    expect(next([publish('x')], many(3, publish(), LONG))).toBe(0)
  })

  it('is not of a namespace that has reached its limit', () => {
    expect(next([publish()], many(3, publish(), LONG))).toBe(-1)
    expect(next([publish(), publish('x')], many(3, publish(), LONG))).toBe(1)
  })

  it('is one of another kind if all running tasks of a kind hang', () => {
    const hanging = [...many(2, publish('a'), LONG), ...many(2, publish('b'), LONG)]
    expect(next([publish('x'), unpublish], hanging)).toBe(1)
    expect(next([publish('x'), stats], hanging)).toBe(1)
    expect(next([unpublish, publish('x')], many(4, unpublish, LONG))).toBe(1)
    expect(next([stats, publish('x')], many(4, stats, LONG))).toBe(1)
  })

  it('is of a namespace without a running task if few workers of its kind are left', () => {
    const limits = { ...LIMITS, isShared: true } as const
    const at = (waiting: ScheduledTask[], running: StartedTask[]) => findNextRunnableTask(waiting, running, NOW, limits)
    const running = [...many(1, publish('a'), LONG), ...many(1, publish('b'), LONG)]
    expect(at([publish('a'), publish('c')], running)).toBe(1)
    expect(at([publish('a')], running.slice(0, 1))).toBe(0)
  })

  it('is none if the total limit is reached', () => {
    const limits = { ...LIMITS, maxTotal: 3 }
    expect(findNextRunnableTask([unpublish], many(3, publish(), LONG), NOW, limits)).toBe(-1)
    expect(findNextRunnableTask([unpublish], many(2, publish(), LONG), NOW, limits)).toBe(0)
  })

  it('is not of a kind that has reached its own lower limit', () => {
    const limits = { ...LIMITS, maxByKind: { stats: 1 } }
    expect(findNextRunnableTask([stats, unpublish], many(1, stats, LONG), NOW, limits)).toBe(1)
  })
})

describe('the start of a further worker', () => {
  const limits = { ...LIMITS, growAfterMs: 100 }
  /** For a task that waits since NOW. @param starts of the running tasks, relative to NOW */
  const delay = (processors: number, ...starts: number[]) => {
    const running = starts.map((start) => ({ startedAt: NOW + start }))
    return computeWorkerStartDelayMs(NOW, running, NOW, limits, processors)
  }

  it('waits for nothing if a worker is idle', () => {
    expect(delay(2)).toBe(0)
  })

  it('comes after the delay if a processor is free, or the running tasks are slow', () => {
    expect(delay(4, 0, 0)).toBe(100)
    expect(delay(2, -500)).toBe(100)
    expect(delay(1, -500, -20)).toBe(100)
  })

  it('comes once so many tasks are slow that a processor is free', () => {
    expect(delay(2, 50)).toBe(150)
    expect(delay(2, -500, 50)).toBe(150)
    expect(delay(4, -500, 40, 50, 60)).toBe(140)
  })

  it('comes after four times the delay although quick tasks use all processors', () => {
    expect(delay(2, 350)).toBe(400)
  })
})
