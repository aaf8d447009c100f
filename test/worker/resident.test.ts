import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import type { WorkerEvents, WorkerProcess } from '../../src/kernel/worker-process.ts'
import { keepResidentWorker } from '../../src/worker/resident.ts'

interface Fake extends WorkerEvents<null, never> {
  killed: number
  closed: number
}

describe('the resident worker', () => {
  let workers: Fake[]
  let kept: Disposable
  const start = (events: WorkerEvents<null, never>): WorkerProcess<never> => {
    const fake: Fake = { ...events, killed: 0, closed: 0 }
    workers.push(fake)
    return { send: () => {}, kill: () => void fake.killed++, close: () => void fake.closed++ }
  }
  const worker = (index: number): Fake => {
    const found = workers[index]
    if (found === undefined) throw new Error(`there is no worker ${index}`)
    return found
  }

  beforeEach(() => {
    vi.useFakeTimers()
    workers = []
    kept = keepResidentWorker(start, 5000)
  })
  afterEach(() => {
    kept[Symbol.dispose]()
    vi.useRealTimers()
  })

  it('is killed if it reports nothing for too long during a call, and never between calls', async () => {
    await vi.advanceTimersByTimeAsync(100_000)
    worker(0).onReport({ patienceMs: 5000 })
    await vi.advanceTimersByTimeAsync(4000)
    worker(0).onReport({})
    await vi.advanceTimersByTimeAsync(4000)
    worker(0).onReport({ outcome: null })
    await vi.advanceTimersByTimeAsync(100_000)
    expect(worker(0).killed).toBe(0)
    worker(0).onReport({ patienceMs: 750 })
    await vi.advanceTimersByTimeAsync(1500)
    expect(worker(0).killed).toBe(1)
    expect(workers).toHaveLength(1)
  })

  it('is replaced once it has ended, later each time that one ends soon', async () => {
    worker(0).onExit('ended')
    await vi.advanceTimersByTimeAsync(1000)
    worker(1).onExit('ended')
    await vi.advanceTimersByTimeAsync(1999)
    expect(workers).toHaveLength(2)
    await vi.advanceTimersByTimeAsync(1)
    expect(workers).toHaveLength(3)
    await vi.advanceTimersByTimeAsync(60_000)
    worker(2).onExit('ended')
    await vi.advanceTimersByTimeAsync(1000)
    expect(workers).toHaveLength(4)
  })

  it('is closed, and not replaced, when heal ends', async () => {
    kept[Symbol.dispose]()
    expect(worker(0).closed).toBe(1)
    worker(0).onExit('ended')
    await vi.advanceTimersByTimeAsync(100_000)
    expect(workers).toHaveLength(1)
  })
})
