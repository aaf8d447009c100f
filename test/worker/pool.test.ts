import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { VolumePublicationQueue } from '../../src/frontends/csi/publication-queue.ts'
import {
  type CsiTask,
  type CsiTaskOutcome,
  type CsiTaskProgress,
  LOST_CSI_TASK_OUTCOMES,
} from '../../src/frontends/csi/worker-tasks.ts'
import type { WorkerEvents, WorkerProcess } from '../../src/kernel/worker-process.ts'
import { WorkerPool } from '../../src/worker/pool.ts'

const LIMITS = { maxQuick: 2, longAfterMs: 5000, maxPerKind: 4, maxPerNamespace: 4, minIdle: 0 }
const FAILED: CsiTaskOutcome = { failure: { code: 'FAILED_PRECONDITION', message: 'no' } }

interface Fake extends WorkerEvents<CsiTaskOutcome, CsiTaskProgress> {
  jobs: CsiTask[]
  killed: number
  closed: number
}

let workers: Fake[]
let pool: WorkerPool<CsiTask, CsiTaskOutcome, CsiTaskProgress>
beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
  workers = []
  pool = new WorkerPool(
    (events): WorkerProcess<CsiTask> => {
      const fake: Fake = { ...events, jobs: [], killed: 0, closed: 0 }
      workers.push(fake)
      return {
        send: (job) => void fake.jobs.push(job),
        kill: () => void fake.killed++,
        close: () => void fake.closed++,
      }
    },
    LIMITS,
    LOST_CSI_TASK_OUTCOMES,
  )
})
afterEach(() => void vi.useRealTimers())

const publish = (directory: string, options: Record<string, string> = {}): CsiTask => ({
  do: 'publish',
  volumeId: 'v',
  directory,
  options,
  secrets: {},
  lifecycle: 'inline',
})
const unpublish = (directory: string): CsiTask => ({ do: 'unpublish', volumeId: 'v', directory })
const stats = (directory: string): CsiTask => ({ do: 'stats', volumeId: 'v', directory })
const worker = (at: number) => workers[at] ?? expect.unreachable()
const settle = (at: number, outcome: CsiTaskOutcome = {}) => worker(at).onReport({ outcome })
const directories = () => workers.map(({ jobs }) => jobs.map(({ directory }) => directory))

describe('worker processes', () => {
  it('are started when needed, run one task at a time, and the most recently used worker is taken first', async () => {
    const first = pool.run(publish('/a'), 'shop')
    const second = pool.run(publish('/b'), 'shop')
    const third = pool.run(publish('/c'), 'shop')
    expect([first, second, third].map(({ isWaiting }) => isWaiting)).toEqual([false, false, true])
    settle(1)
    expect(await second.outcome).toEqual({})
    expect(directories()).toEqual([['/a'], ['/b', '/c']])
    settle(0, FAILED)
    settle(1)
    expect([await first.outcome, await third.outcome]).toEqual([FAILED, {}])
    pool.run(publish('/d'), 'shop')
    expect(directories()).toEqual([['/a'], ['/b', '/c', '/d']])
  })

  it('are closed when they are idle for long, or after a long task', async () => {
    pool.run(publish('/a'), 'shop')
    settle(0)
    await vi.advanceTimersByTimeAsync(89_000)
    expect(worker(0).closed).toBe(0)
    await vi.advanceTimersByTimeAsync(2000)
    expect(worker(0).closed).toBe(1)
    pool.run(publish('/b'), 'shop')
    await vi.advanceTimersByTimeAsync(5000)
    settle(1)
    expect(worker(1).closed).toBe(1)
    pool.run(publish('/c'), 'shop')
    expect(workers).toHaveLength(3)
  })

  it('are started one after the other while others run, each after a task has waited for the delay', async () => {
    const limits = { ...LIMITS, maxQuick: 4, minIdle: 0, startedAhead: 1, growAfterMs: 100 }
    const start = (events: WorkerEvents<CsiTaskOutcome, CsiTaskProgress>): WorkerProcess<CsiTask> => {
      const fake: Fake = { ...events, jobs: [], killed: 0, closed: 0 }
      workers.push(fake)
      return { send: (job) => void fake.jobs.push(job), kill: () => {}, close: () => {} }
    }
    workers = []
    const growing = new WorkerPool(start, limits, LOST_CSI_TASK_OUTCOMES)
    expect(workers).toHaveLength(1)
    await vi.advanceTimersByTimeAsync(1000)
    for (const directory of ['/a', '/b', '/c', '/d']) growing.run(publish(directory), 'shop')
    expect(directories()).toEqual([['/a']])
    settle(0)
    expect(directories()).toEqual([['/a', '/b']])
    await vi.advanceTimersByTimeAsync(99)
    expect(workers).toHaveLength(1)
    await vi.advanceTimersByTimeAsync(1)
    expect(directories()).toEqual([['/a', '/b'], ['/c']])
    await vi.advanceTimersByTimeAsync(100)
    expect(directories()).toEqual([['/a', '/b'], ['/c'], ['/d']])
  })

  it('that were started ahead are closed too when they get no task for long', async () => {
    let closed = 0
    const start = () => ({ send: () => {}, kill: () => {}, close: () => void closed++ })
    new WorkerPool(start, { ...LIMITS, startedAhead: 1 }, LOST_CSI_TASK_OUTCOMES)
    await vi.advanceTimersByTimeAsync(89_000)
    expect(closed).toBe(0)
    await vi.advanceTimersByTimeAsync(2000)
    expect(closed).toBe(1)
  })

  it('that hang do not delay the tasks of other workers', async () => {
    for (const directory of ['/a', '/b', '/c']) pool.run(publish(directory), 'shop')
    expect(workers).toHaveLength(2)
    await vi.advanceTimersByTimeAsync(5001)
    expect(directories()).toEqual([['/a'], ['/b'], ['/c']])
  })

  it('that exit without a report give their task the outcome of a lost task', async () => {
    const running = pool.run(publish('/a'), 'shop')
    worker(0).onExit('was ended by SIGKILL')
    expect(await running.outcome).toMatchObject({
      failure: { code: 'ABORTED', message: expect.stringContaining('was ended by SIGKILL') },
    })
    pool.run(publish('/b'), 'shop')
    expect(directories()).toEqual([['/a'], ['/b']])
  })

  it('that exit while they are idle are not used again', () => {
    pool.run(publish('/a'), 'shop')
    settle(0)
    worker(0).onExit('was ended by SIGKILL')
    pool.run(publish('/b'), 'shop')
    expect(directories()).toEqual([['/a'], ['/b']])
  })

  it('that are killed get no other task, despite further reports', async () => {
    const running = pool.run(publish('/a'), 'shop')
    running.cancel()
    expect(worker(0).killed).toBe(1)
    settle(0)
    pool.run(publish('/b'), 'shop')
    expect(directories()).toEqual([['/a'], ['/b']])
    worker(0).onExit('was ended by SIGKILL')
    expect(await running.outcome).toMatchObject({ failure: { code: 'ABORTED' } })
  })

  it('never start a cancelled task, and are not killed after their task has ended', async () => {
    const first = pool.run(publish('/a'), 'shop')
    pool.run(publish('/b'), 'shop')
    const third = pool.run(publish('/c'), 'shop')
    third.cancel()
    expect(await third.outcome).toMatchObject({ failure: { code: 'ABORTED' } })
    settle(0)
    first.cancel()
    expect(worker(0).killed).toBe(0)
    expect(directories()).toEqual([['/a'], ['/b']])
  })

  it('end with the server, once their running task has ended', () => {
    pool.run(publish('/a'), 'shop')
    pool.run(publish('/b'), 'shop')
    settle(1)
    pool.close()
    expect(workers.map(({ closed }) => closed)).toEqual([1, 1])
  })
})

describe('the running CSI task of a target', () => {
  let publications: VolumePublicationQueue
  beforeEach(() => {
    publications = new VolumePublicationQueue(pool, () => performance.now())
  })
  const answer = (job: CsiTask, ms = 100_000) => publications.answer(job, 'shop', performance.now() + ms)
  const turn = () => vi.advanceTimersByTimeAsync(0)

  it('is joined by an identical call', async () => {
    const both = [answer(publish('/a')), answer(publish('/a'))]
    settle(0)
    expect(await Promise.all(both)).toEqual([{}, {}])
    expect(directories()).toEqual([['/a']])
  })

  it('continues after its caller got ABORTED with the progress, and the next call joins the task', async () => {
    const first = answer(publish('/a'), 2000)
    worker(0).onReport({ progress: { visited: 12, changed: 3 } })
    await vi.advanceTimersByTimeAsync(2000)
    expect(await first).toMatchObject({
      failure: {
        code: 'ABORTED',
        message:
          'mounting takes 2 s so far (inodes visited: 12, changed: 3) and goes on: kubelet asks again [in-progress]',
      },
    })
    const second = answer(publish('/a'))
    settle(0, FAILED)
    expect(await second).toEqual(FAILED)
    expect(directories()).toEqual([['/a']])
  })

  it("reports the progress of another call's walk while it waits for that walk", async () => {
    const first = answer(publish('/a'), 2000)
    worker(0).onReport({ progress: { visited: 12, changed: 3, isAnothers: true } })
    await vi.advanceTimersByTimeAsync(2000)
    expect(await first).toMatchObject({
      failure: {
        message:
          'mounting takes 2 s so far (waiting for the walk of another call, inodes visited: 12, changed: 3) and goes on: kubelet asks again [in-progress]',
      },
    })
  })

  it('has its failure reported once to the next identical call if no call waited for the failure', async () => {
    const first = answer(publish('/a'), 1000)
    await vi.advanceTimersByTimeAsync(1000)
    await first
    settle(0, FAILED)
    await turn()
    expect(await answer(publish('/a'))).toEqual(FAILED)
    expect(directories()).toEqual([['/a']])
    void answer(publish('/a'))
    expect(directories()).toEqual([['/a', '/a']])
  })

  it.each([
    ['to a call with other options', publish('/a', { x: 'y' }), 0],
    ['a long time later', publish('/a'), 5 * 60_000],
  ])('has its failure not reported %s', async (_what, job, later) => {
    const first = answer(publish('/a'), 1000)
    await vi.advanceTimersByTimeAsync(1000)
    await first
    settle(0, FAILED)
    await vi.advanceTimersByTimeAsync(later)
    void answer(job)
    expect(directories().flat()).toEqual(['/a', '/a'])
  })

  it('is started again by the next call if its worker crashed while no call waited', async () => {
    const first = answer(publish('/a'), 1000)
    await vi.advanceTimersByTimeAsync(1000)
    await first
    worker(0).onExit('was ended by SIGKILL')
    await turn()
    void answer(publish('/a'))
    expect(directories()).toEqual([['/a'], ['/a']])
  })

  it('is not joined by a different call, which gets ABORTED', async () => {
    void answer(publish('/a'))
    expect(await answer(publish('/a', { x: 'y' }))).toMatchObject({ failure: { code: 'ABORTED' } })
    expect(directories()).toEqual([['/a']])
  })

  it('is killed by an unpublication, which starts when the killed worker has ended', async () => {
    const first = answer(publish('/a'))
    const second = answer(unpublish('/a'))
    expect(worker(0).killed).toBe(1)
    expect(workers).toHaveLength(1)
    worker(0).onExit('was ended by SIGKILL')
    expect(await first).toMatchObject({ failure: { code: 'ABORTED' } })
    await turn()
    settle(1)
    expect(await second).toEqual({})
    expect(workers.map(({ jobs }) => jobs.map((job) => job.do))).toEqual([['publish'], ['unpublish']])
  })

  it('gets no second worker while the killed first worker has not ended', async () => {
    void answer(publish('/a'))
    const second = answer(unpublish('/a'), 3000)
    await vi.advanceTimersByTimeAsync(3000)
    expect(await second).toMatchObject({ failure: { code: 'ABORTED' } })
    expect(workers).toHaveLength(1)
  })

  it('delays stats if it is a publication, and delays a publication if it is stats', async () => {
    const first = answer(publish('/a'))
    const look = answer(stats('/a'))
    settle(0)
    expect(await first).toEqual({})
    await turn()
    const again = answer(publish('/a'))
    const seen = { stats: { space: undefined, trouble: '' } }
    settle(0, seen)
    expect(await look).toEqual(seen)
    await turn()
    settle(0)
    expect(await again).toEqual({})
    expect(worker(0).jobs.map((job) => job.do)).toEqual(['publish', 'stats', 'publish'])
  })

  it('reports to its caller that it waits for other tasks', async () => {
    void answer(publish('/a'))
    void answer(publish('/b'))
    const third = answer(publish('/c'), 1000)
    await vi.advanceTimersByTimeAsync(1000)
    expect(await third).toMatchObject({
      failure: {
        code: 'ABORTED',
        message: 'waiting for 1 s, as much else is being mounted: kubelet asks again [in-progress]',
      },
    })
  })
})
