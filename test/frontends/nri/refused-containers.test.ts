import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import type { ContainerCloneOutcome, ContainerCloneRequest } from '../../../src/container/clone-request.ts'
import { createFault } from '../../../src/errors/fault.ts'
import { Refusal } from '../../../src/errors/refusal.ts'
import {
  type ContainerEventHandler,
  createContainerEventHandler,
} from '../../../src/frontends/nri/container-lifecycle.ts'
import type { Container, PodSandbox } from '../../../src/frontends/nri/protocol.ts'
import type { CloneTaskProgress } from '../../../src/frontends/nri/refused-containers.ts'
import type { CloneService } from '../../../src/frontends/nri/worker-tasks.ts'
import { containerOf, KUBELET, mountOf, podOf, SOURCES, USUAL, VOLUMES } from './pods.ts'

const DEADLINE = 1500
const asking = podOf({ 'modekeep/group': '2000' })
const containerWith = (id: string, source: string, name = 'app'): Container => ({
  ...containerOf([...USUAL, mountOf('/data', source)]),
  id,
  name,
})
const withClaim = (id: string, name?: string) => containerWith(id, SOURCES.claim, name)

let attached: string[]
let checked: PromiseWithResolvers<void>[]
let givenUp: AbortSignal[]
let attach: (order: ContainerCloneRequest, begun: (job: CloneTaskProgress) => void) => Promise<ContainerCloneOutcome>
let reads: number
let read: () => Promise<void>
let containers: ContainerEventHandler

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance', 'Date'] })
  attached = []
  checked = []
  givenUp = []
  reads = 0
  read = async () => {}
  attach = () => new Promise(() => {})
  const clones = {
    attach(order: ContainerCloneRequest, _late: AbortSignal, begun: (job: CloneTaskProgress) => void) {
      attached.push(order.container)
      return attach(order, begun)
    },
    check(_order: ContainerCloneRequest, giveUp: AbortSignal) {
      const check = Promise.withResolvers<void>()
      checked.push(check)
      givenUp.push(giveUp)
      return check.promise
    },
    forget: async () => {},
    release: async () => {},
    without: async () => {},
    reconcile: async () => {},
  } as unknown as CloneService
  containers = createContainerEventHandler({
    kubeletDir: KUBELET,
    clones,
    deadlineMs: DEADLINE,
    readConfig: async () => {
      reads++
      await read()
      return { config: { map: [{}] }, faults: [] }
    },
    readPodVolumes: async () => VOLUMES,
    readProcessGroups: async () => undefined,
    log: () => {},
  })
})
afterEach(() => void vi.useRealTimers())

const works = async ({ clones }: ContainerCloneRequest): Promise<ContainerCloneOutcome> => ({
  mounts: clones.map(() => ({ do: 'replace', source: '/clones/0' })),
})

/** Each attempt comes by a connection of its own. @returns 'made', or the refusal */
function create(container: Container, pod: PodSandbox = asking): Promise<string> {
  const answer = containers.create(pod, container, new AbortController().signal) ?? Promise.resolve(undefined)
  return answer.then(
    () => 'made',
    (error: Refusal) => error.message,
  )
}

async function refusedLate(container: Container, pod?: PodSandbox): Promise<string> {
  const refusal = create(container, pod)
  await vi.advanceTimersByTimeAsync(DEADLINE + 100)
  return await refusal
}

describe('a container that was refused because its volume took too long', () => {
  it('is refused at once under any container id, even after a reconnect, until a background retry succeeds', async () => {
    expect(await refusedLate(withClaim('a'))).toContain('did not answer in time')
    expect([attached, checked.length, reads]).toEqual([['a'], 1, 1])
    attach = works
    // No timer advances: nothing is waited for, and nothing is read.
    expect(await create(withClaim('b'))).toContain('did not answer in time')
    expect([attached, reads]).toEqual([['a'], 1])
    checked[0]?.resolve()
    await vi.advanceTimersByTimeAsync(0)
    // The first worker has not ended, so its volume still hangs.
    expect(await create(withClaim('c'))).toContain('has not answered since an earlier attempt')
  })

  it('is retried after at most 60 s', async () => {
    attach = () => Promise.reject(new Refusal(createFault('internal', 'never')))
    read = () => new Promise(() => {})
    expect(await refusedLate(withClaim('a'))).toContain(
      'no time to read what the volumes need (the configuration of the node)',
    )
    read = async () => {}
    attach = works
    await vi.advanceTimersByTimeAsync(59_000)
    expect(await create(withClaim('b'))).toContain('no time to read')
    await vi.advanceTimersByTimeAsync(1000)
    expect(await create(withClaim('c'))).toBe('made')
  })

  it('has its background retry cancelled after 60 s', async () => {
    await refusedLate(withClaim('a'))
    await vi.advanceTimersByTimeAsync(59_000)
    expect(givenUp.map(({ aborted }) => aborted)).toEqual([false])
    await vi.advanceTimersByTimeAsync(1000)
    expect(givenUp.map(({ aborted }) => aborted)).toEqual([true])
  })

  it('is one of at most 4,096 remembered containers', async () => {
    for (let at = 0; at < 4097; at++)
      void create(withClaim(`id-${at}`), { ...asking, uid: `uid-${at}`, namespace: `n${at}` })
    await vi.advanceTimersByTimeAsync(DEADLINE * 2)
    attached = []
    expect(await create(withClaim('x'), { ...asking, uid: 'uid-4096', namespace: 'n4096' })).not.toBe('made')
    expect(attached).toEqual([])
  })
})

describe('an unresponsive volume', () => {
  it('makes the runtime wait once for all containers of its pod', async () => {
    await refusedLate(withClaim('a'))
    attach = works
    const other = (id: string) => containerWith(id, SOURCES.disk, 'other')
    expect(await create(other('b'))).toContain('is not mapped while a volume of the same pod')
    expect(attached).toEqual(['a'])
    // Its own volume answers in the background: the next attempt is made.
    checked[1]?.resolve()
    await vi.advanceTimersByTimeAsync(0)
    expect(await create(other('c'))).toBe('made')
  })

  it('makes the runtime wait once for all pods of a namespace, and once more for the pods of another namespace', async () => {
    await refusedLate(withClaim('a'))
    attach = works
    expect(await create(withClaim('b'), { ...asking, uid: 'second' })).toContain('the same volume of another pod')
    expect(await create(withClaim('c'), { ...asking, uid: 'third', namespace: 'other' })).toBe('made')
    expect(attached).toEqual(['a', 'c'])
  })
})

describe('the refusal of a container that took too long', () => {
  const late = (job: CloneTaskProgress) => {
    attach = (_order, begun) => {
      begun(job)
      return new Promise(() => {})
    }
    return refusedLate(withClaim('a'))
  }
  const job = { isWaiting: false, isBlocked: false }

  it.each([
    [
      { ...job, progress: { step: 'open', volume: 0 } },
      'did not answer in time: kubelet tries again; look at its disk',
    ],
    [{ ...job, progress: { step: 'records' } }, "as modekeep's records on the node's disk took long"],
    [{ ...job, progress: { step: 'attach', volume: 0 } }, 'as the making of the mapped mount took long'],
    [{ ...job, progress: undefined }, 'the node is short of processor time or memory'],
    [{ isWaiting: true, isBlocked: true, progress: undefined }, 'wait for other volumes that do not answer'],
  ] satisfies [CloneTaskProgress, string][])('names the slow step: %j', async (slow, text) => {
    expect(await late(slow)).toContain(text)
  })

  it("is not sent while the container's task waits for other tasks of modekeep", async () => {
    const waiting = { isWaiting: true, isBlocked: false, progress: undefined }
    const outcome = Promise.withResolvers<ContainerCloneOutcome>()
    attach = (_order, begun) => {
      begun(waiting)
      return outcome.promise
    }
    const answer = create(withClaim('a'))
    await vi.advanceTimersByTimeAsync(10 * DEADLINE)
    waiting.isWaiting = false
    await vi.advanceTimersByTimeAsync(DEADLINE - 100)
    outcome.resolve({ mounts: [{ do: 'replace', source: '/clones/0' }] })
    expect(await answer).toBe('made')
  })
})
