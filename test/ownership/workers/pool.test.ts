import { EventEmitter } from 'node:events'
import type { Worker } from 'node:worker_threads'
import { expect, it } from 'vitest'
import type { Handle } from '../../../src/host/host.ts'
import type { PackedFrames } from '../../../src/ownership/walk/frames.ts'
import { newReport } from '../../../src/ownership/walk/report.ts'
import {
  QUEUED,
  STOP,
  signalOf,
  type ToPool,
  type ToWorker,
  type WorkerData,
} from '../../../src/ownership/workers/messages.ts'
import { type PoolOrder, WorkerPool } from '../../../src/ownership/workers/pool.ts'

/** A thread that the test plays. */
class PlayedThread extends EventEmitter {
  readonly told: ToWorker[] = []
  postMessage(message: ToWorker): void {
    this.told.push(message)
  }
  say(...messages: ToPool[]): void {
    for (const message of messages) this.emit('message', message)
  }
  end(): void {
    this.say({ say: 'end' })
    this.emit('exit', 0)
  }
}

/** A part that holds one directory open. */
const partOf = (handle: number): PackedFrames => [
  {
    handle: handle as Handle,
    name: Uint8Array.of(),
    path: Uint8Array.of(),
    block: undefined,
    position: 0n,
    inode: 1n,
    born: 1n,
    mountId: 1,
  },
]

const FIRST = partOf(100)

/** A pool of threads of which only so many can be started. */
function arrange(size: number, { startable = size, append }: { startable?: number; append?: () => bigint[] } = {}) {
  const threads: PlayedThread[] = []
  let shared: Int32Array = new Int32Array()
  const [journal, closed]: [string[], number[]] = [[], []]
  const order = {
    size,
    first: FIRST,
    inodes: { close: (handle: number) => void closed.push(handle) },
    journal: {
      append(chunks: Uint8Array[]) {
        if (append) return append()
        journal.push(`append ${chunks.map((chunk) => chunk.join()).join(' ')}`)
        return chunks.map(([first = 0]) => 1000n + BigInt(first))
      },
      settle: (batch: bigint) => void journal.push(`settle ${batch}`),
      forget: (keys: BigInt64Array) => void journal.push(`forget ${keys.join()}`),
    },
    ledger: { find: () => ['wait', undefined] },
    spawn(data: WorkerData) {
      if (data.index >= startable) throw new Error('no more processes')
      shared = data.shared
      const thread = new PlayedThread()
      threads.push(thread)
      return thread as unknown as Worker
    },
  }
  const pool = new WorkerPool(order as unknown as PoolOrder)
  let isOver = false
  const ending = pool.run().finally(() => {
    isOver = true
  })
  ending.catch(() => {})
  const thread = (index: number) => threads[index] ?? expect.unreachable(`no thread ${index}`)
  return { pool, ending, thread, threads, journal, closed, shared: () => shared, isOver: () => isOver }
}

const turn = () => new Promise((resolve) => setImmediate(resolve))
const batch = (number: number, first: number): ToPool => ({
  say: 'record',
  batch: number,
  records: Uint8Array.of(first),
})

it('a part goes to a thread that is idle, and the walk is over when nobody has any left', async () => {
  const { ending, thread, shared, threads } = arrange(2)
  thread(0).say({ say: 'idle' }, { say: 'idle' })
  thread(1).say({ say: 'idle' })
  expect(threads.map(({ told }) => told)).toEqual([[{ say: 'part', part: FIRST }], []])
  expect(shared()[QUEUED]).toBe(0)
  Atomics.add(shared(), QUEUED, 1)
  const shares = partOf(101)
  thread(0).say({ say: 'share', part: shares })
  // The first thread has one already.
  expect(thread(1).told).toEqual([{ say: 'part', part: shares }])
  thread(0).say({ say: 'done' })
  expect(thread(0).told).toHaveLength(1)
  thread(1).say({ say: 'done' })
  for (const { told } of threads) expect(told.at(-1)).toEqual({ say: 'end' })
  thread(0).say({ say: 'report', report: { ...newReport(), visited: 5, changed: 3 } })
  thread(1).say({ say: 'report', report: { ...newReport(), visited: 2, changed: 2 } })
  for (const one of threads) one.end()
  expect(await ending).toMatchObject({ visited: 7, changed: 5 })
})

it('what threads record at about the same time becomes durable with one commit, and each hears of its own', async () => {
  const { thread, journal } = arrange(2)
  thread(0).say(batch(0, 1))
  thread(1).say(batch(0, 2))
  thread(0).say(batch(1, 3))
  expect([thread(0).told, thread(1).told, journal]).toEqual([[], [], []])
  await turn()
  expect(journal).toEqual(['append 1 2 3'])
  expect(thread(0).told).toEqual([0, 1].map((number) => ({ say: 'durable', batch: number })))
  expect(thread(1).told).toEqual([{ say: 'durable', batch: 0 }])
  thread(1).say({ say: 'settle', batch: 0 })
  thread(0).say({ say: 'settle', batch: 1 })
  expect(journal).toEqual(['append 1 2 3', 'settle 1002', 'settle 1003'])
})

it('a batch that nothing is changed for is on disk before it is settled', () => {
  const { thread, journal } = arrange(1)
  thread(0).say(batch(4, 9), { say: 'settle', batch: 4 })
  expect(journal).toEqual(['append 9', 'settle 1009'])
})

it('a batch that cannot be recorded is made by no thread: each is woken, and the error arrives when all have ended', async () => {
  const full = new Error('the disk is full')
  const append = () => {
    throw full
  }
  const { ending, thread, threads, shared, journal, isOver } = arrange(3, { append })
  const before = [...shared()]
  thread(1).say(batch(0, 1))
  await turn()
  expect(shared()[STOP]).toBe(1)
  for (const index of threads.keys()) expect(shared()[signalOf(index)]).not.toBe(before[signalOf(index)])
  for (const { told } of threads) expect(told).toEqual([])
  const other = new Error('another thread of the walk has failed')
  for (const one of threads.slice(1)) {
    one.say({ say: 'failed', error: other })
    one.emit('exit', 0)
  }
  await turn()
  expect(isOver()).toBe(false)
  thread(0).emit('exit', 0)
  await expect(ending).rejects.toBe(full)
  expect(journal).toEqual([])
})

it.each<[string, RegExp, (thread: PlayedThread) => void]>([
  ['has failed', /its own/, (thread) => thread.say({ say: 'failed', error: new Error('its own') })],
  ['was ended by an error', /out of memory/, (thread) => thread.emit('error', new Error('out of memory'))],
  ['has ended without a word', /ended early \(3\)/, (thread) => thread.emit('exit', 3)],
])('a thread that %s ends the walk, and what nobody took is let go', async (_what, message, fail) => {
  const { ending, thread, shared, closed } = arrange(2)
  fail(thread(1))
  expect(shared()[STOP]).toBe(1)
  thread(0).say({ say: 'failed', error: new Error('another thread of the walk has failed') })
  for (const index of [0, 1]) thread(index).emit('exit', 0)
  await expect(ending).rejects.toThrow(message)
  expect(closed).toEqual([100])
})

it("the walk goes on with the threads that could be started, and the first part stays the caller's without any", async () => {
  const none = arrange(2, { startable: 0 })
  expect(await none.ending).toBeUndefined()
  expect(none.closed).toEqual([])
  const { ending, thread, threads } = arrange(3, { startable: 1 })
  thread(0).say({ say: 'idle' }, { say: 'done' })
  expect(threads.map(({ told }) => told.map(({ say }) => say))).toEqual([['part', 'end']])
  thread(0).end()
  expect(await ending).toEqual(newReport())
})

it('what a thread shares before it hears of a failure is given to none that has ended, and let go', async () => {
  const { ending, thread, closed } = arrange(2)
  thread(0).say({ say: 'idle' })
  thread(1).say({ say: 'idle' }, { say: 'failed', error: new Error('its own') })
  thread(0).say({ say: 'share', part: partOf(101) })
  expect(thread(1).told).toEqual([])
  for (const index of [0, 1]) thread(index).emit('exit', 0)
  await expect(ending).rejects.toThrow('its own')
  expect(closed).toEqual([101])
})
