import { beforeEach, describe, expect, it } from 'vitest'
import type { OwnVolumeMountsRequest } from '../../../src/container/clone-request.ts'
import { createFault } from '../../../src/errors/fault.ts'
import { Refusal } from '../../../src/errors/refusal.ts'
import type { ContainerEventHandler } from '../../../src/frontends/nri/container-lifecycle.ts'
import { restrictModekeepMounts } from '../../../src/frontends/nri/own-mounts.ts'
import type { Container, ContainerMount, PodSandbox } from '../../../src/frontends/nri/protocol.ts'
import type { ReadMountRestrictions } from '../../../src/frontends/nri/worker-tasks.ts'
import { containerOf, KUBELET, mountOf, podOf, SOURCES, USUAL } from './pods.ts'

const FLAGS = ['nosuid', 'nodev', 'noexec']
const POD = podOf()
const heard = new AbortController().signal

let read: ReadMountRestrictions
let requests: OwnVolumeMountsRequest[]
let events: [string, string, Record<string, unknown> | undefined][]
let answer: () => ReturnType<ContainerEventHandler['create']>
let containers: ContainerEventHandler

beforeEach(() => {
  requests = []
  events = []
  answer = () => undefined
  read = async ({ mounts }) => mounts.map(() => FLAGS)
  const mapping = { create: () => answer() } as unknown as ContainerEventHandler
  containers = restrictModekeepMounts(mapping, {
    kubeletDir: KUBELET,
    readRestrictions: (request, giveUp) => {
      requests.push(request)
      return read(request, giveUp)
    },
    waitMs: 30,
    giveUpMs: 1000,
    log: (level, event, facts) => void events.push([level, event, facts]),
  })
})

const create = (mounts: readonly ContainerMount[], pod: PodSandbox = POD, more: Partial<Container> = {}) =>
  containers.create(pod, { ...containerOf([...USUAL, ...mounts]), ...more }, heard)

describe("the mount options of modekeep's own volumes", () => {
  it('are added to the mounts of a container without the annotation', async () => {
    const mounts = [
      mountOf('/own', SOURCES.own),
      mountOf('/claim', SOURCES.ownClaim, ['rbind', 'rprivate', 'ro']),
      mountOf('/other', SOURCES.nfs),
    ]
    expect(await create(mounts)).toMatchObject([
      { destination: '/own', type: 'bind', source: SOURCES.own, options: ['rbind', 'rprivate', 'rw', ...FLAGS] },
      { destination: '/claim', type: 'bind', options: ['rbind', 'rprivate', 'ro', ...FLAGS] },
    ])
    expect(requests).toMatchObject([
      { container: 'c0ffee', mounts: [{ destination: '/own' }, { destination: '/claim' }] },
    ])
  })

  it("are read below the plugin's kubelet directory if the runtime has resolved a link above it", async () => {
    const linked = SOURCES.own.replace(KUBELET, '/mnt/disk/kubelet')
    expect(await create([mountOf('/own', linked)])).toMatchObject([{ source: linked }])
    expect(requests[0]?.mounts).toEqual([{ destination: '/own', source: SOURCES.own }])
  })

  it('are not read for a container without such a volume, or with a user namespace', () => {
    expect(create([mountOf('/other', SOURCES.nfs)])).toBeUndefined()
    const inNamespace = containerOf([mountOf('/own', SOURCES.own)], { isInUserNamespace: true })
    expect(containers.create(POD, inNamespace, heard)).toBeUndefined()
    expect(requests).toEqual([])
  })

  it("do not change a mount that already has these options or is not modekeep's", async () => {
    read = async () => [FLAGS, []]
    const mounts = [mountOf('/own', SOURCES.own, ['rbind', ...FLAGS]), mountOf('/claim', SOURCES.claim)]
    expect(await create(mounts)).toEqual([])
  })

  it('do not replace a clone, and do not hide a refusal of the clones', async () => {
    const clone = { ...mountOf('/claim', '/clones/0'), options: ['rbind'] } as ContainerMount
    const mounts = [mountOf('/own', SOURCES.own), mountOf('/claim', SOURCES.claim)]
    answer = async () => [clone]
    expect(await create(mounts)).toMatchObject([clone, { destination: '/own' }])
    expect(requests.map(({ mounts }) => mounts.map(({ destination }) => destination))).toEqual([['/own']])
    answer = () => Promise.reject(new Refusal(createFault('internal', 'no')))
    await expect(create(mounts)).rejects.toThrow('no')
  })

  it('are omitted with a warning, without refusing or delaying the container, if they are read too late', async () => {
    const late = Promise.withResolvers<string[][]>()
    read = () => late.promise
    expect(await create([mountOf('/own', SOURCES.own)])).toEqual([])
    const message = expect.stringMatching(/within 30 ms/)
    expect(events).toMatchObject([['warn', 'unrestricted', { container: 'c0ffee', destinations: ['/own'], message }]])
    // While that read runs, no call waits for it, and no other read begins for these mounts.
    const before = performance.now()
    expect(await create([mountOf('/own', SOURCES.own)])).toEqual([])
    expect(performance.now() - before).toBeLessThan(25)
    expect(requests).toHaveLength(1)
    late.resolve([FLAGS])
    await new Promise((resolve) => setTimeout(resolve, 5))
    expect(await create([mountOf('/own', SOURCES.own)])).toHaveLength(1)
  })

  it('are read although the clones have taken longer than the limit', async () => {
    answer = () => new Promise((resolve) => setTimeout(resolve, 50, []))
    read = () => new Promise((resolve) => setTimeout(resolve, 5, [FLAGS]))
    expect(await create([mountOf('/own', SOURCES.own)])).toHaveLength(1)
  })

  it('are omitted with the reason in the log if they cannot be read', async () => {
    read = async () => {
      throw new Refusal(createFault('internal', 'the configuration cannot be read'))
    }
    expect(await create([mountOf('/own', SOURCES.own)])).toEqual([])
    expect(events).toMatchObject([['warn', 'unrestricted', { message: expect.stringContaining('cannot be read') }]])
  })
})
