import { EventEmitter } from 'node:events'
import { MessageChannel, receiveMessageOnPort, type Worker } from 'node:worker_threads'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { type Inodes, SystemError } from '../../../src/host/host.ts'
import type { Journal } from '../../../src/ownership/journal/journal.ts'
import type { WalkReport } from '../../../src/ownership/walk/report.ts'
import { own, restore } from '../../../src/ownership/walks.ts'
import { STOP, type WorkerData } from '../../../src/ownership/workers/messages.ts'
import { runWorker } from '../../../src/ownership/workers/worker.ts'
import { groups, listTree, makeTree } from '../../helpers/tree.ts'
import { MemoryVolume } from '../volume.ts'

let volume: MemoryVolume
/** What threads have failed with. */
let failures: string[]
beforeEach(() => {
  failures = []
  volume = new MemoryVolume()
  makeTree(volume.fs, volume.directory, [
    // It has its group: the thread that starts the others records nothing of its own.
    'file 0 0640 2000',
    'file plain 0640 5',
    'dir deep/down 0755',
    'file deep/down/inner 0640 7',
    'file odd 0600',
  ])
  vi.useFakeTimers({ toFake: ['setImmediate'] })
})
afterEach(() => {
  vi.useRealTimers()
  vi.restoreAllMocks()
})

/** A walk's one thread, played in the test's own: where it would sleep, what it waits for has its turn. */
class InnerThread extends EventEmitter {
  readonly #channel = new MessageChannel()
  readonly #data: WorkerData
  #wasStopped = false

  constructor(inodes: Inodes, data: WorkerData) {
    super()
    this.#data = data
    vi.spyOn(Atomics, 'wait').mockImplementation(() => {
      if (!this.deliver()) throw new Error('it waits for ever')
      return 'ok'
    })
    queueMicrotask(() => {
      runWorker(inodes, this.#channel.port2, data)
      this.deliver()
      this.#channel.port1.close()
      this.emit('exit', 0)
    })
  }

  postMessage(message: unknown): void {
    this.#channel.port1.postMessage(message)
  }

  /** @returns whether there was anything to hear or to do */
  deliver(): boolean {
    let any = vi.getTimerCount() > 0
    for (;;) {
      const heard = receiveMessageOnPort(this.#channel.port1)
      if (!heard) break
      any = true
      failures.push(...(heard.message.say === 'failed' ? [heard.message.error.message] : []))
      this.emit('message', heard.message)
    }
    vi.runAllTimers()
    // A pool that has failed wakes its threads without a message, once.
    const isStopped = this.#data.shared[STOP] === 1 && !this.#wasStopped
    this.#wasStopped ||= isStopped
    return any || isStopped
  }
}

const now = () => groups(listTree(volume.fs, volume.directory))
const inThread = (inodes: Inodes, from = 1) => ({
  workerPool: { size: 1, from, spawn: (data: WorkerData) => new InnerThread(inodes, data) as unknown as Worker },
})
const walk = (
  inodes = volume.host.inodes,
  { group = 2000, from = 1, spoil = (_: Journal) => {} } = {},
): Promise<WalkReport> =>
  volume.call((root, journal) => {
    spoil(journal)
    return own(volume.host.inodes, root, { group, access: 'keep' }, journal, inThread(inodes, from))
  })
const spoil = (journal: Journal) => {
  journal.append = () => {
    throw new Error('the disk is full')
  }
}
const open = () => volume.world.handles.size

it('a thread gives every inode its group, and what it recorded is settled and put back', async () => {
  const before = now()
  expect(await walk()).toMatchObject({ visited: 7, changed: 6, alreadyRight: 1, left: {} })
  expect(new Set(Object.values(now()))).toEqual(new Set([2000]))
  await volume.call(async (_root, journal) => expect(journal.unfinished()).toEqual([]))
  await volume.call((root, journal) => restore(volume.host.inodes, root, journal, inThread(volume.host.inodes)))
  expect(now()).toEqual(before)
})

it('inodes that are refused are recorded as what they still are, and nobody waits for their batch to be settled', async () => {
  await walk()
  const { inodes } = volume.host
  const refusing: Inodes = {
    ...inodes,
    chown(handle, gid) {
      if (inodes.pathOf(handle).endsWith('/odd')) throw new SystemError('fchownat', 'EPERM', 'odd')
      inodes.chown(handle, gid)
    },
  }
  const { left } = await walk(refusing, { group: 3000 })
  expect(left).toEqual({ 'immutable or append-only': { count: 1, examples: ['odd'] } })
  expect(now()).toMatchObject({ odd: 2000, plain: 3000 })
  await volume.call(async (_root, journal) => expect(journal.unfinished()).toEqual([]))
  expect(await walk(inodes, { group: 3000 })).toMatchObject({ changed: 1, left: {} })
})

it('a batch that cannot be recorded changes nothing: the thread does not wait for it, and its error arrives', async () => {
  const before = now()
  const held = open()
  await expect(walk(undefined, { spoil })).rejects.toThrow('the disk is full')
  expect(failures).toEqual(['another thread of the walk has failed'])
  expect(now()).toEqual(before)
  // The journal's call has opened the root.
  expect(open()).toBe(held + 1)
  expect(await walk()).toMatchObject({ changed: 6 })
})

it('what cannot be recorded before a thread is started leaves no inode and no directory on its way open', async () => {
  const held = open()
  await expect(walk(undefined, { spoil, from: 4 })).rejects.toThrow('the disk is full')
  expect([failures, open()]).toEqual([[], held + 1])
})

it('an error in a thread ends the walk, with every handle closed, and the next walk goes on', async () => {
  const held = open()
  const { inodes } = volume.host
  const failing: Inodes = {
    ...inodes,
    chown() {
      throw new SystemError('fchownat', 'EIO', 'inner')
    },
  }
  await expect(walk(failing)).rejects.toThrow('EIO')
  expect(open()).toBe(held + 1)
  await walk()
  expect(new Set(Object.values(now()))).toEqual(new Set([2000]))
})
