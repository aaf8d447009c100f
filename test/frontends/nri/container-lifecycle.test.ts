import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { beforeEach, describe, expect, it } from 'vitest'
import {
  type ContainerCloneOutcome,
  type ContainerCloneRequest,
  PendingGrantRefusal,
  type RuntimeSnapshot,
} from '../../../src/container/clone-request.ts'
import { createFault, type Fault } from '../../../src/errors/fault.ts'
import { Refusal } from '../../../src/errors/refusal.ts'
import {
  type ContainerEventHandler,
  createContainerEventHandler,
} from '../../../src/frontends/nri/container-lifecycle.ts'
import type { PodProcessGids } from '../../../src/frontends/nri/cri.ts'
import type { PodVolumes } from '../../../src/frontends/nri/pod-volumes.ts'
import type { Container, PodSandbox } from '../../../src/frontends/nri/protocol.ts'
import type { CloneService } from '../../../src/frontends/nri/worker-tasks.ts'
import { containerOf, KUBELET, mountOf, POD, podOf, SOURCES, USUAL, VOLUMES } from './pods.ts'

let jobs: string[]
let attach: (order: ContainerCloneRequest, late: AbortSignal) => Promise<ContainerCloneOutcome>
let release: () => Promise<void>
let check: () => Promise<void>
let reconcile: () => Promise<void>
let known: RuntimeSnapshot[]
let events: [string, string, Record<string, unknown> | undefined][]
let faults: Fault[]
let groupsOfPod: (sandbox: string) => Promise<PodProcessGids | undefined>
let lookAtPod: () => Promise<PodVolumes>
let containers: ContainerEventHandler

beforeEach(() => {
  jobs = []
  known = []
  events = []
  faults = []
  groupsOfPod = async () => undefined
  lookAtPod = async () => VOLUMES
  attach = async ({ clones }) => ({ mounts: clones.map((_, at) => ({ do: 'replace', source: `/clones/${at}` })) })
  release = async () => {}
  check = async () => {}
  reconcile = async () => {}
  const clones: CloneService = {
    attach(order, late) {
      jobs.push(`attach ${order.container}`)
      return attach(order, late)
    },
    check: () => check(),
    release(container) {
      jobs.push(`release ${container}`)
      return release()
    },
    async forget(container) {
      jobs.push(`forget ${container}`)
    },
    async recordWithout({ clones: lacking }, why) {
      jobs.push(`without ${lacking.map(({ volume, group }) => `${volume} ${group}`)}: ${why}`)
    },
    reconcile(what) {
      known.push(what)
      return reconcile()
    },
  }
  containers = createContainerEventHandler({
    kubeletDir: KUBELET,
    clones,
    deadlineMs: 50,
    readConfig: async () => ({ config: { map: [{}] }, faults }),
    readPodVolumes: () => lookAtPod(),
    readProcessGroups: (sandbox) => groupsOfPod(sandbox),
    log: (level, event, facts) => void events.push([level, event, facts]),
  })
})

const asking = podOf({ 'modekeep/group': '2000' })
const optional = podOf({ 'modekeep/group': '2000', 'modekeep/group-optional': 'true' })
const withData = containerOf([...USUAL, mountOf('/data', SOURCES.claim, ['rbind', 'ro'])])
const heard = new AbortController().signal
const create = (pod: PodSandbox, container: Container) => containers.create(pod, container, heard)
/** The runtime tells the mounts that a container has. */
const mapped = (id: string) => ({ ...withData, id, mounts: [mountOf('/data', `/clones/mounts/${id}/0`, ['rbind'])] })
const started = (id: string, as = mapped, pod = asking) => containers.onStarted(pod, as(id))
const settled = () => new Promise((resolve) => setTimeout(resolve, 10))

describe('the NRI plugin', () => {
  it('replies at once and queues no task for a container whose pod has no annotation', async () => {
    expect(create(podOf(), withData)).toBeUndefined()
    started('c0ffee', mapped, podOf())
    containers.onEnded('c0ffee')
    await settled()
    expect(jobs).toEqual([])
  })

  it('replaces annotated mounts, removes the clones after the start and the record after the end', async () => {
    expect(await create(asking, withData)).toEqual([
      { destination: '/data', type: 'bind', source: '/clones/0', options: ['rbind', 'ro'] },
    ])
    started('c0ffee')
    containers.onEnded('c0ffee')
    containers.onEnded('c0ffee')
    await settled()
    expect(jobs).toEqual(['attach c0ffee', 'release c0ffee', 'forget c0ffee'])
  })

  it('runs the tasks of a container in the order of the events, even if an earlier task takes long', async () => {
    const releasing = Promise.withResolvers<void>()
    release = () => releasing.promise
    await create(asking, withData)
    started('c0ffee')
    containers.onEnded('c0ffee')
    await settled()
    expect(jobs).toEqual(['attach c0ffee', 'release c0ffee'])
    releasing.resolve()
    await settled()
    expect(jobs).toEqual(['attach c0ffee', 'release c0ffee', 'forget c0ffee'])
  })

  it('keeps nothing of an answered container in memory while the connection lasts', async () => {
    const createPod = async (at: number) => {
      const pod = podOf({ 'modekeep/group': '2000' })
      await create(pod, { ...withData, id: `container ${at}` })
      return new WeakRef(pod)
    }
    const pods: WeakRef<PodSandbox>[] = []
    for (let at = 0; at < 10; at++) pods.push(await createPod(at))
    setFlagsFromString('--expose-gc')
    const collectGarbage = runInNewContext('gc')
    await settled()
    collectGarbage()
    await settled()
    collectGarbage()
    expect(pods.filter((pod) => pod.deref() !== undefined)).toHaveLength(0)
  })

  it('refuses a container whose group is optional while its volume is being walked', async () => {
    attach = async () => {
      throw new PendingGrantRefusal(createFault('map-grant', 'is being walked'))
    }
    await expect(create(optional, withData)).rejects.toThrow('is being walked')
    await settled()
    expect(jobs).toEqual(['attach c0ffee', 'forget c0ffee'])
    // No event of a refused container follows, so one that stays tracked would be forgotten twice.
    containers.onSandboxStopped(withData.podSandboxId)
    await settled()
    expect(jobs).toHaveLength(2)
  })

  it('leaves mounts unchanged that need no clone', async () => {
    attach = async () => ({ mounts: [{ do: 'keep' }] })
    expect(await create(asking, withData)).toEqual([])
  })

  it("refuses a container if the runtime reports that the container's processes are not in the group", async () => {
    groupsOfPod = async () => ({ certain: [3000], possible: [1000] })
    await expect(create(asking, withData)).rejects.toThrow(
      /^annotation modekeep\/group is "2000", but the processes of container "app" are not in group 2000: write it in/,
    )
    expect(jobs).toEqual([])
    containers.onSandboxStopped(asking.id)
    groupsOfPod = async () => ({ certain: [2000], possible: [] })
    let told: boolean | undefined
    attach = async ({ clones, isMember }) => {
      told = isMember
      return { mounts: clones.map(() => ({ do: 'replace', source: '/clones/0' })) }
    }
    expect(await create(asking, withData)).toHaveLength(1)
    expect(told).toBe(true)
    // Groups passed with the container belong to the container.
    const user = { uid: 1000, gid: 2000, additionalGids: [] }
    groupsOfPod = async () => ({ certain: [], possible: [] })
    expect(await create(asking, { ...withData, user })).toHaveLength(1)
  })

  it("requests the pod's groups once for each sandbox, in advance, and again if the first request was too early", async () => {
    const asked: string[] = []
    groupsOfPod = async (sandbox) => {
      asked.push(sandbox)
      return asked.length === 1 ? undefined : { certain: [2000], possible: [] }
    }
    containers.onSandboxStarted(podOf())
    containers.onSandboxStarted(asking)
    await expect.poll(() => asked).toEqual(['sandbox'])
    expect(await create(asking, withData)).toHaveLength(1)
    expect(await create(asking, { ...withData, id: 'another' })).toHaveLength(1)
    expect(asked).toEqual(['sandbox', 'sandbox'])
    containers.onSandboxStopped('sandbox')
    expect(await create(asking, { ...withData, id: 'later' })).toHaveLength(1)
    expect(asked).toHaveLength(3)
  })

  it('refuses a container with the reason and removes its clones if a clone cannot be made', async () => {
    attach = async () => {
      throw new Refusal(createFault('internal', 'annotation modekeep/group is "2000", but volume "pvc-1" cannot'))
    }
    await expect(create(asking, withData)).rejects.toThrow('but volume "pvc-1" cannot')
    await settled()
    // It is remembered no more.
    containers.onEnded('c0ffee')
    await settled()
    expect(jobs).toEqual(['attach c0ffee', 'forget c0ffee'])
    expect(events[0]).toMatchObject(['error', 'refused', { namespace: 'shop', pod: 'web-0', container: 'c0ffee' }])
  })

  it('refuses a container after an unexpected error, with details only in the log', async () => {
    attach = async () => {
      throw new Error('EIO')
    }
    await expect(create(asking, withData)).rejects.toThrow('modekeep failed: EIO; see its log on the node')
    expect(events[0]).toMatchObject(['error', 'refused', { message: 'EIO', unexpected: true }])
  })

  it('lets a container start after any failure if the group is optional', async () => {
    attach = async () => {
      throw new Refusal(createFault('internal', 'no'))
    }
    expect(await create(optional, withData)).toBeUndefined()
    expect(events[0]).toMatchObject(['warn', 'without', { message: 'no' }])
    await settled()
    expect(jobs).toEqual(['attach c0ffee', 'forget c0ffee', 'without pvc-1 2000: no'])
    attach = async () => ({ mounts: [{ do: 'without', why: 'it is FAT' }] })
    expect(await create(optional, withData)).toEqual([])
    expect(events[1]).toMatchObject(['warn', 'without', { volumes: [{ volume: 'pvc-1', message: 'it is FAT' }] }])
  })

  it('refuses a container at the deadline and cancels its task', async () => {
    const ended = Promise.withResolvers<void>()
    attach = (_order, late) => {
      late.addEventListener('abort', () => ended.resolve())
      return new Promise(() => {})
    }
    await expect(create(asking, withData)).rejects.toThrow(
      /^annotation modekeep\/group is "2000", but volume "pvc-1" \(at "\/data"\) did not answer in time: kubelet tries again; .*leave the volume out/,
    )
    await ended.promise
  })

  it("removes clones that were made after the container's deadline", async () => {
    const first = Promise.withResolvers<ContainerCloneOutcome>()
    attach = () => first.promise
    await expect(create(asking, withData)).rejects.toThrow('in time')
    first.resolve({ mounts: [{ do: 'replace', source: '/clones/0' }] })
    await settled()
    expect(jobs).toEqual(['attach c0ffee', 'forget c0ffee'])
  })

  it('retries a refused container only after the clones of the first attempt are removed', async () => {
    const first = Promise.withResolvers<ContainerCloneOutcome>()
    attach = () => first.promise
    await expect(create(asking, withData)).rejects.toThrow('in time')
    attach = async () => ({ mounts: [{ do: 'replace', source: '/clones/0' }] })
    const again = create(asking, withData)
    first.reject(new Refusal(createFault('internal', 'the worker was ended')))
    expect(await again).toHaveLength(1)
    expect(jobs).toEqual(['attach c0ffee', 'forget c0ffee', 'attach c0ffee'])
  })

  it('refuses a container of an annotated pod while the configuration has a fault', async () => {
    faults = [createFault('config-invalid', 'node configuration /etc/modekeep/config.json: key "x" is unknown')]
    await expect(create(asking, withData)).rejects.toThrow(
      'annotation modekeep/group is "2000", but node configuration /etc/modekeep/config.json: key "x" is unknown',
    )
    expect(jobs).toEqual([])
  })

  it("warns once about an annotation's path without a volume, and maps the other volumes", async () => {
    const mistyped = podOf({ 'modekeep/group': '2000,/dat=2000' })
    expect(await create(mistyped, withData)).toHaveLength(1)
    expect(await create(mistyped, { ...withData, id: 'again' })).toHaveLength(1)
    expect(events).toEqual([
      [
        'warn',
        'unmatched',
        expect.objectContaining({ container: 'c0ffee', message: expect.stringContaining('"/dat"') }),
      ],
    ])
  })

  it('names the annotation in every refusal', async () => {
    const refused = async (why: string) => {
      const sentence = `annotation modekeep/group is "2000", but ${why}`
      await expect(create(asking, withData)).rejects.toThrow(sentence)
    }
    attach = async () => {
      throw new Error('EIO')
    }
    await refused('modekeep failed: EIO')
    lookAtPod = async () => {
      throw new Refusal(createFault('internal', 'kubelet has no directory "/x" here'))
    }
    await refused('kubelet has no directory "/x" here')
    lookAtPod = () => new Promise(() => {})
    await refused('modekeep had no time to read what the volumes need')
  })
})

describe('a container with a user namespace and without the annotation', () => {
  const inNamespace = (source: string) => containerOf([...USUAL, mountOf('/data', source)], { isInUserNamespace: true })
  const subPath = `${POD}/volume-subpaths/pvc-1/app/0`

  it.each([SOURCES.claim, subPath])(
    "with another driver's volume starts despite any fault of the node: %s",
    async (source) => {
      faults = [createFault('config-invalid', 'key "x" is unknown')]
      expect(await create(podOf(), inNamespace(source))).toBeUndefined()
      lookAtPod = async () => {
        throw new Refusal(createFault('internal', 'kubelet has no directory "/x" here'))
      }
      expect(await create(podOf(), inNamespace(source))).toBeUndefined()
      lookAtPod = async () => ({ ...VOLUMES, drivers: new Map() })
      expect(await create(podOf(), inNamespace(source))).toBeUndefined()
      expect(jobs).toEqual([])
    },
  )

  it("with modekeep's own volume is refused if kubelet's directory cannot be read, and mapped otherwise", async () => {
    expect(await create(podOf(), inNamespace(SOURCES.ownClaim))).toHaveLength(1)
    expect(await create(podOf(), inNamespace(SOURCES.own))).toHaveLength(1)
    lookAtPod = async () => {
      throw new Refusal(createFault('internal', 'kubelet has no directory "/x" here'))
    }
    await expect(create(podOf(), inNamespace(SOURCES.own))).rejects.toThrow(
      'the pod has a user namespace of its own, but kubelet has no directory "/x" here',
    )
  })
})

describe('at each connection of the NRI plugin', () => {
  const listed = (id: string, state: number) => ({ ...withData, id, state })

  it('clones of started containers and records of ended ones are removed', async () => {
    containers.synchronize([asking], [listed('created', 1), listed('running', 3), listed('stopped', 4)])
    await settled()
    expect(known).toMatchObject([{ created: ['created'], started: ['running', 'stopped'] }])
  })

  it('annotated containers without a clone are recorded, whether started or not', async () => {
    const unreadable = podOf({ 'modekeep/group': 'x' })
    containers.synchronize([asking], [listed('created', 1), listed('running', 3), listed('stopped', 4)])
    await settled()
    const away = expect.stringMatching(/^without pvc-1 2000: it was created while no "modekeep nri" was asked/)
    expect(jobs).toEqual([away, away])
    expect(known[0]?.unmapped).toEqual(['created', 'running', 'stopped'])
    containers.synchronize([unreadable], [listed('running', 3)])
    await settled()
    containers.synchronize([podOf()], [listed('running', 3)])
    await settled()
    expect(jobs.slice(2)).toEqual([expect.stringMatching(/^without pvc-1 undefined: /)])
  })

  it('containers with a clone, or whose mounts the runtime does not report, are not recorded', async () => {
    const mapped = {
      ...listed('mapped', 3),
      mounts: [mountOf('/data', '/var/lib/modekeep/nri/mounts/mapped/0', ['rbind'])],
    }
    containers.synchronize([asking], [mapped, { ...listed('untold', 3), mounts: [] }])
    await settled()
    expect(jobs).toEqual([])
    expect(known[0]?.unmapped).toEqual([])
  })

  it('a running task of a container ends before its new tasks start', async () => {
    const first = Promise.withResolvers<ContainerCloneOutcome>()
    attach = () => first.promise
    const gone = new AbortController()
    const made = containers.create(asking, { ...withData, id: 'running' }, gone.signal)
    await settled()
    gone.abort()
    await expect(made).rejects.toThrow('the runtime closed the connection')
    containers.synchronize([asking], [listed('running', 3)])
    await settled()
    expect(jobs).toEqual(['attach running'])
    first.resolve({ mounts: [{ do: 'replace', source: '/clones/0' }] })
    await settled()
    expect(jobs).toEqual(['attach running', 'forget running', expect.stringMatching(/^without pvc-1 2000: /)])
  })

  it('annotated containers are recorded if their volume is in another kubelet directory', async () => {
    const moved = containerOf([mountOf('/data', SOURCES.claim.replace(KUBELET, '/data/kubelet'))])
    containers.synchronize([asking], [{ ...moved, id: 'running', state: 3 }])
    await settled()
    expect(jobs).toEqual([expect.stringMatching(/^without pvc-1 2000: /)])
  })

  it('containers from before the connection get the tasks of later events', async () => {
    containers.synchronize([asking], [listed('created', 1)])
    started('created', mapped)
    started('unknown', mapped, podOf())
    await settled()
    expect(jobs.filter((job) => !job.startsWith('without'))).toEqual(['release created'])
  })

  it('containers that were being created are tracked after they start', async () => {
    containers.synchronize([], [])
    containers.onStarted(asking, mapped('answered before'))
    containers.onStarted(asking, { ...withData, id: 'not asked about' })
    containers.onStarted(podOf(), { ...withData, id: 'not asking' })
    await settled()
    expect(jobs).toEqual([
      'release answered before',
      expect.stringMatching(/^without pvc-1 2000: it was created while/),
    ])
  })

  it('a task that waits for a volume does not delay the reconciliation', async () => {
    attach = () => new Promise(() => {})
    await create(optional, { ...withData, id: 'stuck' })
    containers.synchronize([{ ...optional, id: 'sandbox' }, asking], [listed('stuck', 3), listed('running', 3)])
    await settled()
    expect(jobs).toEqual(['attach stuck', expect.stringMatching(/^without pvc-1 2000: it was created while/)])
  })

  it('new containers do not wait for the reconciliation, which uses only the newest waiting snapshot', async () => {
    const reconciling = Promise.withResolvers<void>()
    reconcile = () => reconciling.promise
    for (const id of ['a', 'b', 'c']) containers.synchronize([podOf()], [listed(id, 3)])
    expect(await create(asking, withData)).toHaveLength(1)
    expect(known).toHaveLength(1)
    reconciling.resolve()
    await settled()
    expect(known.map(({ started }) => started)).toEqual([['a'], ['c']])
  })
})

describe('an ended container', () => {
  it('gets no further tasks from late events', async () => {
    await create(asking, withData)
    containers.onEnded('c0ffee')
    started('c0ffee')
    await settled()
    expect(jobs).toEqual(['attach c0ffee', 'forget c0ffee'])
  })
})

describe('a container that never started', () => {
  it('is forgotten when its sandbox stops', async () => {
    await create(asking, withData)
    await create(asking, { ...withData, id: 'other', podSandboxId: 'another' })
    containers.onSandboxStopped(withData.podSandboxId)
    containers.onEnded('c0ffee')
    await settled()
    expect(jobs).toEqual(['attach c0ffee', 'attach other', 'forget c0ffee'])
  })
})

describe('an unresponsive volume', () => {
  it('makes the runtime wait only once until the volume responds', async () => {
    const hanging = Promise.withResolvers<ContainerCloneOutcome>()
    attach = () => hanging.promise
    await expect(create(asking, withData)).rejects.toThrow('did not answer in time')
    const again = create(asking, { ...withData, id: 'again' })
    await expect(again).rejects.toThrow('"pvc-1" (at "/data") has not answered since an earlier attempt: look at')
    expect(jobs).toEqual(['attach c0ffee'])
    // One that needs another one besides may be told which of them hangs, and one of another pod too.
    attach = async ({ clones }) => ({ mounts: clones.map(() => ({ do: 'replace', source: '/clones/0' })) })
    const other = containerOf([...withData.mounts, mountOf('/scratch', SOURCES.scratch, ['rbind'])])
    expect(await create({ ...asking, uid: 'another' }, { ...withData, id: 'others' })).toHaveLength(1)
    await expect(create(asking, { ...other, id: 'both' })).rejects.toThrow('has not answered since')
    hanging.reject(new Refusal(createFault('internal', 'the worker was ended')))
    await settled()
    attach = async () => ({ mounts: [{ do: 'replace', source: '/clones/0' }] })
    expect(await create(asking, { ...withData, id: 'again' })).toHaveLength(1)
  })
})
