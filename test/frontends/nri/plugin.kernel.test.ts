import { lstatSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { createFault } from '../../../src/errors/fault.ts'
import { Refusal } from '../../../src/errors/refusal.ts'
import type { ContainerEventHandler } from '../../../src/frontends/nri/container-lifecycle.ts'
import type { ListedSandbox } from '../../../src/frontends/nri/cri.ts'
import { NRI_CONNECTION_TIMING, runNriPlugin } from '../../../src/frontends/nri/plugin.ts'
import type { ContainerMount } from '../../../src/frontends/nri/protocol.ts'
import { exchangeAfterCheck, swapDirectories } from '../../helpers/sockets.ts'
import { decode } from './proto.ts'
import { FakeRuntime, type RuntimeEnd } from './runtime.ts'

const UNIMPLEMENTED = 12
const FAILED_PRECONDITION = 9

let top: string
let runtime: FakeRuntime
let stop: AbortController
let running: Promise<void>
let told: string[]
let events: [string, string, Record<string, unknown> | undefined][]
let create: ContainerEventHandler['create']
let sandboxes: ListedSandbox[]

beforeEach(async () => {
  top = mkdtempSync(join(tmpdir(), 'nri-'))
  told = []
  events = []
  create = () => undefined
  sandboxes = []
  stop = new AbortController()
  runtime = await new FakeRuntime().listen(join(top, 'nri.sock'))
})
afterEach(async () => {
  stop.abort()
  await running
  await runtime.close()
  rmSync(top, { recursive: true })
})

function start(timing = NRI_CONNECTION_TIMING, socket = join(top, 'nri.sock')): void {
  const containers: ContainerEventHandler = {
    create: (pod, container, unheard) => create(pod, container, unheard),
    onStarted: (_pod, { id }) => void told.push(`started ${id}`),
    onEnded: (id) => void told.push(`gone ${id}`),
    onSandboxStarted: ({ id }) => void told.push(`sandbox ${id}`),
    onSandboxStopped: (id) => void told.push(`stopped ${id}`),
    synchronize: (pods, all) => void told.push(`all ${pods.map(({ id }) => id)} ${all.map(({ id }) => id)}`),
  }
  const log = (level: string, event: string, facts?: Record<string, unknown>) => void events.push([level, event, facts])
  running = runNriPlugin(
    {
      socket,
      index: '10',
      handler: containers,
      timing,
      listSandboxes: async () => [sandboxes],
      writeRecord: async () => {},
      log,
    },
    stop.signal,
  )
}

async function connected(timing = NRI_CONNECTION_TIMING): Promise<RuntimeEnd> {
  const next = runtime.next()
  start(timing)
  return next
}

const container = (id: string) => ({ pod: { id: 'p', uid: 'u' }, container: { id, args: ['sh', '-c', 'true'] } })

describe('the NRI plugin on a socket', () => {
  it('registers, subscribes to events, and first gets all containers', async () => {
    const end = await connected()
    expect(await end.registered).toMatchObject({ pluginName: 'modekeep', pluginIdx: '10', NRIVersion: 'v0.12.0' })
    // RunPodSandbox 1, StopPodSandbox 2, CreateContainer 4, PostStartContainer 7, StopContainer 10, RemoveContainer 11
    expect(await end.start([{ id: 'p1' }], [{ id: 'c1' }, { id: 'c2' }])).toBe(0b110_0100_1011)
    expect(told).toEqual(['all p1 c1,c2'])
    expect(events).toContainEqual([
      'info',
      'configured',
      { runtime: 'containerd', version: 'v2.1.9', requestTimeoutMs: 2000 },
    ])
  })

  it('accepts the container list in parts', async () => {
    const end = await connected()
    const more = await end.call('Synchronize', 'SynchronizeRequest', { pods: [{ id: 'a' }], more: true })
    expect(decode('SynchronizeResponse', more.payload ?? Buffer.alloc(0))).toEqual({ more: true })
    const last = await end.call('Synchronize', 'SynchronizeRequest', { containers: [{ id: 'c' }] })
    expect(decode('SynchronizeResponse', last.payload ?? Buffer.alloc(0))).toEqual({ more: false })
    expect(told).toEqual(['all a c'])
  })

  it('replaces a mount by an entry that removes the old mount and an entry for the new mount', async () => {
    const mount: ContainerMount = {
      destination: '/data',
      type: 'bind',
      source: '/clone/0',
      options: ['rbind', 'ro'],
    } as ContainerMount
    create = async () => [mount]
    const end = await connected()
    await end.start()
    const { payload } = await end.call('CreateContainer', 'ContainerRequest', container('c'))
    expect(decode('CreateContainerResponse', payload ?? Buffer.alloc(0)).adjust.mounts).toEqual([
      { destination: '-/data', type: '', source: '', options: [] },
      { ...mount },
    ])
  })

  it('replies in frames of at most 4096 bytes with any number of mounts', async () => {
    const mounts = Array.from({ length: 300 }, (_, at) => ({
      destination: `/data/${at}`,
      type: 'bind',
      source: `/clone/${at}`,
      options: ['rbind', 'rprivate', 'rw'],
    }))
    create = async () => mounts as ContainerMount[]
    const end = await connected()
    await end.start()
    const { payload } = await end.call('CreateContainer', 'ContainerRequest', container('c'))
    expect(decode('CreateContainerResponse', payload ?? Buffer.alloc(0)).adjust.mounts).toHaveLength(600)
    expect(Math.max(...end.frames)).toBe(4096)
  })

  it('replies to refused containers and unexpected errors with a message, and stays connected', async () => {
    const thrown: (() => Promise<undefined>)[] = [
      async () => {
        throw new Refusal(createFault('annotation-invalid', 'annotation modekeep/group is "x"', 'write a group'))
      },
      () => {
        throw new Error('at once')
      },
      async () => undefined,
    ]
    create = () => thrown.shift()?.()
    const end = await connected()
    await end.start()
    const call = () => end.call('CreateContainer', 'ContainerRequest', container('c'))
    expect(await call()).toEqual({
      status: {
        code: FAILED_PRECONDITION,
        message: 'annotation modekeep/group is "x": write a group [annotation-invalid]',
      },
    })
    expect(await call()).toMatchObject({ status: { message: 'at once' } })
    expect(await call()).toEqual({ payload: Buffer.alloc(0) })
  })

  it('replies to other calls while one container waits', async () => {
    const waiting = Promise.withResolvers<undefined>()
    create = (_pod, { id }) => (id === 'slow' ? waiting.promise : undefined)
    const end = await connected()
    await end.start()
    const slow = end.call('CreateContainer', 'ContainerRequest', container('slow'))
    expect(await end.call('CreateContainer', 'ContainerRequest', container('quick'))).toEqual({
      payload: Buffer.alloc(0),
    })
    waiting.resolve(undefined)
    expect(await slow).toEqual({ payload: Buffer.alloc(0) })
  })

  it('handles starts and ends by StateChange, and by the methods of newer runtimes', async () => {
    const end = await connected()
    await end.start()
    told.length = 0
    for (const event of [1, 7, 10, 11, 6, 2]) {
      await end.call('StateChange', 'StateChangeEvent', { event, ...container(`old-${event}`) })
    }
    for (const method of [
      'RunPodSandbox',
      'PostStartContainer',
      'StopContainer',
      'RemoveContainer',
      'StopPodSandbox',
    ]) {
      await end.call(method, 'ContainerRequest', container(`new-${method}`))
    }
    expect(told).toEqual([
      'sandbox p',
      'started old-7',
      'gone old-10',
      'gone old-11',
      'stopped p',
      'sandbox p',
      'started new-PostStartContainer',
      'gone new-StopContainer',
      'gone new-RemoveContainer',
      'stopped p',
    ])
  })

  it.each(['PostCreateContainer', 'ValidateContainerAdjustment', 'constructor', '__proto__', ''])(
    'replies to the unknown method %j with UNIMPLEMENTED',
    async (method) => {
      const end = await connected()
      await end.start()
      expect(await end.call(method, 'Empty', {})).toMatchObject({ status: { code: UNIMPLEMENTED } })
      expect(await end.call('Shutdown', 'Empty', {}, 'another.Service')).toMatchObject({
        status: { code: UNIMPLEMENTED },
      })
      expect(await end.call('Shutdown', 'Empty', {})).toEqual({ payload: Buffer.alloc(0) })
    },
  )

  it('replies to running calls before it ends, and removes clones that no call waits for', async () => {
    const answers = [Promise.withResolvers<undefined>(), Promise.withResolvers<undefined>()]
    const unheards: AbortSignal[] = []
    create = (_pod, _container, unheard) => answers[unheards.push(unheard) - 1]?.promise
    const first = await connected()
    await first.start()
    const again = runtime.next()
    void first.call('CreateContainer', 'ContainerRequest', container('a'))
    await expect.poll(() => unheards.length).toBe(1)
    first.socket.destroy()
    await expect.poll(() => unheards[0]?.aborted).toBe(true)
    const second = await again
    await second.start()
    const called = second.call('CreateContainer', 'ContainerRequest', container('b'))
    await expect.poll(() => unheards.length).toBe(2)
    stop.abort()
    answers[1]?.resolve(undefined)
    expect(await called).toEqual({ payload: Buffer.alloc(0) })
    await running
  })

  it('ends at its time limit even if the reply to a call never comes', async () => {
    create = () => new Promise(() => {})
    const end = await connected({ ...NRI_CONNECTION_TIMING, answerMs: 50 })
    await end.start()
    void end.call('CreateContainer', 'ContainerRequest', container('a'))
    await end.call('Shutdown', 'Empty', {})
    stop.abort()
    await running
  })

  it('reconnects after a restart of the runtime, and gets all containers again', async () => {
    const first = await connected()
    await first.start([], [{ id: 'c1' }])
    first.socket.destroy()
    await runtime.close()
    runtime = new FakeRuntime()
    await expect.poll(() => events.map(([, event]) => event)).toContain('away')
    await runtime.listen(join(top, 'nri.sock'))
    const second = await runtime.next()
    await second.start([], [{ id: 'c2' }])
    expect(told).toEqual(['all  c1', 'all  c2'])
  })

  it('reconnects if the runtime creates a pod without calling the plugin', async () => {
    const first = await connected({ ...NRI_CONNECTION_TIMING, checkMs: 20 })
    await first.start([{ id: 'before' }])
    const again = runtime.next()
    sandboxes = [
      { id: 'before', isReady: true, createdAtMs: 0 },
      { id: 'skipped', isReady: true, createdAtMs: Date.now() + 1 },
    ]
    await (await again).start([{ id: 'before' }, { id: 'skipped' }])
    expect(events).toContainEqual([
      'warn',
      'away',
      {
        socket: join(top, 'nri.sock'),
        message: 'the runtime created the pod sandbox skipped without calling the plugin',
      },
    ])
  })

  it('ends the check for skipped pods at the first call of the runtime', async () => {
    const end = await connected({ ...NRI_CONNECTION_TIMING, checkMs: 20 })
    await end.start([{ id: 'before' }])
    await end.call('RunPodSandbox', 'ContainerRequest', container('c'))
    sandboxes = [
      { id: 'before', isReady: true, createdAtMs: 0 },
      { id: 'later', isReady: true, createdAtMs: Date.now() + 1 },
    ]
    await new Promise((resolve) => setTimeout(resolve, 200))
    expect(events.map(([, event]) => event)).not.toContain('away')
    expect(await end.call('Shutdown', 'Empty', {})).toEqual({ payload: Buffer.alloc(0) })
  })

  it('connects to the socket whose owner was checked, even if its path was replaced', async () => {
    const [run, others] = [join(top, 'run'), join(top, 'others')]
    for (const directory of [run, others]) mkdirSync(directory)
    renameSync(join(top, 'nri.sock'), join(run, 'nri.sock'))
    const other = await new FakeRuntime().listen(join(others, 'nri.sock'))
    const unexpected = other.next().then(() => 'the other')
    exchangeAfterCheck(() => swapDirectories(run, others))
    const expected = runtime.next().then(() => 'the checked one')
    start(NRI_CONNECTION_TIMING, join(run, 'nri.sock'))
    expect(await Promise.race([unexpected, expected])).toBe('the checked one')
    expect(lstatSync(run).isSymbolicLink()).toBe(true)
    vi.restoreAllMocks()
    await other.close()
  })

  it('waits for a runtime, logs the reason once, and disconnects from a runtime that never responds', async () => {
    const next = runtime.next()
    start({ ...NRI_CONNECTION_TIMING, firstMs: 5, mostMs: 10, registerMs: 100 })
    const mute = await next
    const again = runtime.next()
    await mute.registered
    const second = await again
    await second.registered
    expect(events.filter(([, event]) => event === 'away')).toEqual([
      [
        'warn',
        'away',
        { socket: join(top, 'nri.sock'), message: 'the runtime has not told of its containers in 100 ms' },
      ],
    ])
  })

  it.each([
    ['a frame of 4 GiB', (end: RuntimeEnd) => end.socket.write(Buffer.from('00000001ffffffff', 'hex'))],
    ['a message of 16 MiB', (end: RuntimeEnd) => end.frame(1, Buffer.from('01000000000000010100', 'hex'))],
    ['a message that is no protobuf', (end: RuntimeEnd) => end.send(1, 1, 1, Buffer.from('ffff', 'hex'))],
  ])('closes the connection for %s, and reconnects', async (_what, send) => {
    const end = await connected()
    await end.start()
    const again = runtime.next()
    send(end)
    await (await again).start()
    expect(events.map(([, event]) => event)).toContain('away')
  })

  it('ignores unknown connections and message types', async () => {
    const end = await connected()
    await end.start()
    end.send(77, 1, 1, Buffer.from('ffff', 'hex'))
    end.send(1, 1, 3, Buffer.from('ffff', 'hex'))
    end.send(2, 99, 2, Buffer.alloc(0))
    end.frame(1, Buffer.alloc(0))
    expect(await end.call('Shutdown', 'Empty', {})).toEqual({ payload: Buffer.alloc(0) })
  })
})
