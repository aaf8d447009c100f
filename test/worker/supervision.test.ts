import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import type { WorkerEvents, WorkerProcess } from '../../src/kernel/worker-process.ts'
import { WorkerPool } from '../../src/worker/pool.ts'
import type { WorkerSupervision } from '../../src/worker/supervision.ts'

interface Job {
  do: 'publish'
  directory: string
  isRetry?: boolean
}

const LIMITS = { maxQuick: 8, longAfterMs: 5000, maxPerKind: 16, maxPerNamespace: 16, minIdle: 0 }
const LOST = { notStarted: 'not begun', createExited: (how: string) => `ended: ${how}` }

interface Fake extends WorkerEvents<string, number> {
  pid: number
  jobs: Job[]
  isKilled: boolean
}

let workers: Fake[]
let pool: WorkerPool<Job, string, number>
let startPool: (supervision: WorkerSupervision<Job, string>) => void
const SUPERVISION: WorkerSupervision<Job, string> = {
  patienceMs: 8000,
  retry: (job, { pid, seconds, isLeft }) =>
    job.isRetry ? undefined : { ...job, directory: `${pid} ${seconds} ${isLeft}`, isRetry: true },
  maxLeft: 2,
  refuseTooManyLeft: (namespace, pids) => `${namespace}: ${pids.join(' ')}`,
}

beforeEach(() => {
  vi.useFakeTimers()
  workers = []
  const start = (events: WorkerEvents<string, number>): WorkerProcess<Job> => {
    const fake: Fake = { ...events, pid: 100 + workers.length, jobs: [], isKilled: false }
    workers.push(fake)
    const kill = () => {
      fake.isKilled = true
    }
    return { pid: fake.pid, send: (job) => void fake.jobs.push(job), kill, close: () => {} }
  }
  startPool = (supervision) => {
    pool = new WorkerPool(start, LIMITS, LOST, supervision)
  }
  startPool(SUPERVISION)
})
afterEach(() => void vi.useRealTimers())

const worker = (at: number) => workers[at] ?? expect.unreachable()
const run = (namespace = 'shop') => pool.run({ do: 'publish', directory: '/a' }, namespace)
const directoriesOf = (at: number) => worker(at).jobs.map(({ directory }) => directory)

describe('an unresponsive worker', () => {
  it('is killed at its time limit, and another worker retries the task', async () => {
    const job = run()
    await vi.advanceTimersByTimeAsync(7000)
    worker(0).onReport({})
    await vi.advanceTimersByTimeAsync(7500)
    expect(worker(0).isKilled).toBe(false)
    await vi.advanceTimersByTimeAsync(1000)
    expect(worker(0).isKilled).toBe(true)
    worker(0).onExit('was ended by SIGKILL')
    await vi.advanceTimersByTimeAsync(0)
    expect(directoriesOf(1)).toEqual(['100 8 false'])
    worker(1).onReport({ outcome: 'answered' })
    expect(await job.outcome).toBe('answered')
  })

  it('is killed earlier if it has set a shorter time limit for a part of its task', async () => {
    run()
    worker(0).onReport({ patienceMs: 750 })
    await vi.advanceTimersByTimeAsync(1000)
    expect(worker(0).isKilled).toBe(true)
    run()
    worker(1).onReport({ patienceMs: 750 })
    worker(1).onReport({ patienceMs: null })
    await vi.advanceTimersByTimeAsync(5000)
    expect(worker(1).isKilled).toBe(false)
  })

  it('does not delay the answer to the caller, even if the kernel cannot end the killed process', async () => {
    run()
    await vi.advanceTimersByTimeAsync(8000 + 2000)
    expect(directoriesOf(1)).toEqual(['100 8 true'])
  })

  it('has its task retried only once', async () => {
    const job = run()
    await vi.advanceTimersByTimeAsync(10_000)
    await vi.advanceTimersByTimeAsync(10_000)
    expect(await job.outcome).toBe('ended: (process 101) reported nothing and was ended')
  })

  it("gets its task's outcome from the supervision if no other worker retries it", async () => {
    startPool({
      ...SUPERVISION,
      retry: () => undefined,
      createOutcome: (_, { pid, isLeft }) => `unknown: ${pid} ${isLeft}`,
    })
    const job = run()
    await vi.advanceTimersByTimeAsync(10_000)
    expect(await job.outcome).toBe('unknown: 100 true')
    expect(workers).toHaveLength(1)
  })

  it("that the kernel does not end counts for its task's owner, whose further tasks start no worker until then", async () => {
    startPool({
      ...SUPERVISION,
      retry: () => undefined,
      findOwner: ({ directory }) => directory,
    })
    const look = (directory: string) => pool.run({ do: 'publish', directory }, '')
    look('/a')
    await vi.advanceTimersByTimeAsync(10_000)
    for (let times = 0; times < 3; times++) expect(await look('/a').outcome).toBe('/a: 100')
    expect(look('/b').isWaiting).toBe(false)
    expect(workers).toHaveLength(2)
    worker(0).onExit('was ended by SIGKILL')
    await vi.advanceTimersByTimeAsync(0)
    expect(look('/a').isWaiting).toBe(false)
  })

  it('that the kernel does not end counts for its namespace, and tasks of other namespaces start', async () => {
    run()
    run()
    await vi.advanceTimersByTimeAsync(10_000)
    expect(await run().outcome).toBe('shop: 100 101')
    expect(run('other').isWaiting).toBe(false)
    worker(0).onExit('was ended by SIGKILL')
    await vi.advanceTimersByTimeAsync(0)
    expect(run().isWaiting).toBe(false)
  })

  it('that is cancelled settles its task, even if the kernel does not end the process', async () => {
    const job = run()
    job.cancel()
    await vi.advanceTimersByTimeAsync(2000)
    expect(await job.outcome).toBe('ended: was ended, and the kernel still makes it wait')
  })
})
