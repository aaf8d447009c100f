import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import type { CloneAttachStep, ContainerCloneRequest } from '../../../src/container/clone-request.ts'
import type { ContainerTask, ContainerTaskResult } from '../../../src/container/container-task.ts'
import { createFault } from '../../../src/errors/fault.ts'
import type { Refusal } from '../../../src/errors/refusal.ts'
import { createContainerEventHandler } from '../../../src/frontends/nri/container-lifecycle.ts'
import {
  type CloneService,
  CONTAINER_DEADLINE_MS,
  createCloneService,
  createContainerTaskSupervision,
  createPluginRecordWriter,
  createRestrictionsTaskReader,
  LOST_CONTAINER_TASK_OUTCOMES,
  NRI_WORKER_LIMITS,
} from '../../../src/frontends/nri/worker-tasks.ts'
import { WorkerPool } from '../../../src/worker/pool.ts'
import { containerOf, KUBELET, mountOf, podOf, SOURCES, USUAL, VOLUMES } from './pods.ts'

beforeEach(
  () =>
    void vi.useFakeTimers({
      toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'performance', 'Date'],
    }),
)
afterEach(() => void vi.useRealTimers())

/** A worker whose jobs take so long; one that hangs does not end when it is killed. */
function plugin(timeOf: (namespace: string) => number) {
  let most = 0
  let alive = 0
  const workers = new WorkerPool<ContainerTask, ContainerTaskResult, CloneAttachStep>(
    (events) => {
      most = Math.max(most, ++alive)
      return {
        send(job) {
          const namespace = job.do === 'attach' || job.do === 'check' ? job.request.pod.namespace : ''
          const mounts =
            job.do === 'attach' ? job.request.clones.map(() => ({ do: 'replace', source: '/c' }) as const) : []
          if (job.do === 'attach') events.onReport({ progress: { step: 'open', volume: 0 } })
          const ms = timeOf(namespace)
          if (ms !== Number.POSITIVE_INFINITY) setTimeout(() => events.onReport({ outcome: { mounts } }), ms)
        },
        kill() {},
        close: () => void alive--,
      }
    },
    NRI_WORKER_LIMITS,
    LOST_CONTAINER_TASK_OUTCOMES,
    createContainerTaskSupervision(1000),
  )
  const containers = createContainerEventHandler({
    kubeletDir: KUBELET,
    clones: createCloneService(workers, () => {}),
    deadlineMs: CONTAINER_DEADLINE_MS,
    readConfig: async () => ({ config: { map: [{}] }, faults: [] }),
    readPodVolumes: async () => VOLUMES,
    readProcessGroups: async () => undefined,
    log: () => {},
  })
  const create = (at: number, namespace: string): Promise<string> => {
    const pod = { ...podOf({ 'modekeep/group': '2000' }), uid: `uid-${namespace}-${at}`, namespace }
    const source = SOURCES.disk.replace(/disk$/, `disk-${at}`).replace(podOf().uid, pod.uid)
    const container = { ...containerOf([...USUAL, mountOf('/data', source)]), id: `id-${namespace}-${at}` }
    const answer = containers.create(pod, container, new AbortController().signal) ?? Promise.resolve([])
    return answer.then(
      (mounts) => (mounts?.length === 1 ? 'made' : 'nothing'),
      (error: Refusal) => error.message,
    )
  }
  return { create, most: () => most }
}

it('none of a hundred concurrent containers is refused if each task takes 100 ms, because waiting does not count', async () => {
  const { create } = plugin(() => 100)
  const all = Promise.all(Array.from({ length: 100 }, (_, at) => create(at, 'shop')))
  await vi.advanceTimersByTimeAsync(60_000)
  expect(new Set(await all)).toEqual(new Set(['made']))
})

it('a container is refused once its own task has passed the deadline', async () => {
  const { create } = plugin(() => CONTAINER_DEADLINE_MS + 100)
  const answer = create(0, 'shop')
  await vi.advanceTimersByTimeAsync(CONTAINER_DEADLINE_MS + 60)
  expect(await answer).toContain('did not answer in time')
})

it('hanging volumes of four namespaces keep no pod of another namespace from being created', async () => {
  const { create, most } = plugin((namespace) => (namespace === 'healthy' ? 5 : Number.POSITIVE_INFINITY))
  const hanging = Array.from({ length: 64 }, (_, at) => create(at, `bad-${at % 4}`))
  await vi.advanceTimersByTimeAsync(20_000)
  for (const refusal of await Promise.all(hanging)) expect(refusal).not.toBe('made')
  const healthy = create(0, 'healthy')
  await vi.advanceTimersByTimeAsync(300)
  expect(await healthy).toBe('made')
  expect(most()).toBeLessThanOrEqual(NRI_WORKER_LIMITS.maxTotal ?? 0)
})

/** Workers that never end, as the kernel does not let them. Jobs of these containers or namespaces get no answer. */
function stuckPool(hanging: readonly string[]) {
  const begun: string[] = []
  const killed: string[] = []
  let pids = 0
  const workers = new WorkerPool<ContainerTask, ContainerTaskResult, CloneAttachStep>(
    ({ onReport: said }) => {
      let name = ''
      return {
        pid: ++pids,
        send(job) {
          name = `${job.do} ${nameOf(job)}`
          begun.push(name)
          if (!hanging.some((one) => name.includes(one))) setTimeout(() => said({ outcome: { mounts: [] } }), 5)
        },
        kill: () => void killed.push(name),
        close: () => {},
      }
    },
    NRI_WORKER_LIMITS,
    LOST_CONTAINER_TASK_OUTCOMES,
    createContainerTaskSupervision(1000),
  )
  return { clones: createCloneService(workers, () => {}), workers, begun, killed }
}

const nameOf = (job: ContainerTask) =>
  job.do === 'release' ? job.container : job.do === 'attach' ? job.request.pod.namespace : ''

const orderIn = (namespace: string): ContainerCloneRequest => ({
  container: 'c',
  containerName: 'app',
  sandbox: 's',
  pod: { namespace, name: 'web-0', uid: 'u' },
  hasUserNamespace: false,
  kubeletDir: KUBELET,
  clones: [],
  isOptional: false,
})

const NEVER = new AbortController().signal
const minute = () => vi.advanceTimersByTimeAsync(60_000)

describe('a stuck worker of the NRI plugin', () => {
  it.each(['started', 'gone'] as const)(
    'is killed after 60 s if it removes clones of a container that is %s',
    async (as) => {
      const { clones, killed } = stuckPool(['release'])
      void (as === 'gone' ? clones.forget('a', 'shop') : clones.release('a', 'shop'))
      await vi.advanceTimersByTimeAsync(59_000)
      expect(killed).toEqual([])
      await vi.advanceTimersByTimeAsync(1000)
      expect(killed).toEqual(['release a'])
    },
  )

  it.each([
    ['records a container without its group', (clones: CloneService) => clones.recordWithout(orderIn('shop'), 'late')],
    [
      'cleans up at a connection',
      (clones: CloneService) => clones.reconcile({ at: 0, created: [], started: [], unmapped: [] }),
    ],
  ])('is killed after 60 s if it %s', async (_what, begin) => {
    const { clones, killed } = stuckPool(['without', 'reconcile'])
    void begin(clones)
    await minute()
    expect(killed).toHaveLength(1)
  })

  it('counts for the limits after SIGKILL until it ends, and tasks of other namespaces start', async () => {
    const { clones, begun, killed } = stuckPool(['bad'])
    for (let at = 0; at < 64; at++) void clones.forget(`bad-${at}`, `bad-${at % 4}`)
    await minute()
    await minute()
    expect(killed).toHaveLength(begun.length)
    expect(begun.length).toBeLessThanOrEqual(NRI_WORKER_LIMITS.maxByKind?.release ?? 0)
    void clones.forget('healthy', 'shop')
    await vi.advanceTimersByTimeAsync(0)
    expect(begun).toContain('release healthy')
  })

  it("has further containers of its namespace refused at once, with the worker's process id, and none of other namespaces", async () => {
    const { clones } = stuckPool(['attach bad'])
    const attach = (namespace: string, late: AbortSignal) => clones.attach(orderIn(namespace), late, () => {})
    const late = new AbortController()
    for (let at = 0; at < 3; at++) attach('bad', late.signal).catch(() => {})
    late.abort()
    await vi.advanceTimersByTimeAsync(2000)
    let refusal = ''
    attach('bad', NEVER).catch((error: Refusal) => {
      refusal = error.message
    })
    await vi.advanceTimersByTimeAsync(0)
    expect(refusal).toMatch(/^3 processes .* namespace bad .*\(\d+, \d+, \d+\)/)
    const healthy = attach('shop', NEVER)
    await vi.advanceTimersByTimeAsync(5)
    expect(await healthy).toEqual({ mounts: [] })
  })

  it("leaves one worker for the plugin's registration record, whichever volumes are stuck", async () => {
    const { clones, workers, begun } = stuckPool(['attach', 'check', 'grant', 'release', 'restrictions'])
    const readRestrictions = createRestrictionsTaskReader(workers)
    for (let at = 0; at < 30; at++) {
      const order = orderIn(`bad-${at}`)
      clones.attach(order, NEVER, () => {}).catch(() => {})
      void clones.check(order, NEVER)
      workers.run({ do: 'grant', request: order }, `grant bad-${at}`)
      void clones.forget(`${at}`, `bad-${at}`)
      void readRestrictions({ ...order, mounts: [] }, NEVER)
      await vi.advanceTimersByTimeAsync(NRI_WORKER_LIMITS.longAfterMs + 1)
    }
    void createPluginRecordWriter(workers, () => {})({ isRegistered: true, runtime: '', since: 0, socket: '' })
    await vi.advanceTimersByTimeAsync(NRI_WORKER_LIMITS.longAfterMs + 1)
    expect(begun.at(-1)).toBe('registration ')
    expect(begun).toHaveLength(NRI_WORKER_LIMITS.maxTotal ?? 0)
  })
})

describe('a walk that a pod requests by the annotation modekeep/group-access', () => {
  const pending = { failure: 'is being walked', faults: [createFault('map-grant', 'is being walked')] }

  const sourceOf = (uid: string, volume: string) => `${KUBELET}/pods/${uid}/volumes/kubernetes.io~csi/${volume}/mount`

  /** A plugin whose attach tasks are refused until a walk has ended without a failure. */
  function grantingPlugin(maxRunning = 2) {
    const walks: ((result: ContainerTaskResult) => void)[] = []
    let isWalked = false
    const clones = createCloneService(
      {
        run: (task: ContainerTask) => {
          const outcome = Promise.withResolvers<ContainerTaskResult>()
          if (task.do === 'grant')
            walks.push((result) => {
              isWalked = result.failure === undefined
              outcome.resolve(result)
            })
          else outcome.resolve(isWalked ? { mounts: [] } : { ...pending, isGrantPending: true })
          const isWaiting = task.do === 'grant' && walks.length > maxRunning
          return { outcome: outcome.promise, isWaiting, isBlocked: false, progress: undefined, cancel() {} }
        },
      },
      () => {},
    )
    const attach = (uid: string, volume = 'pvc-1', source = sourceOf(uid, volume)) => {
      const order = orderIn('shop')
      const clone = { volume, destination: '/data', source, options: [], group: 2000, requestedBy: '', isOwn: false }
      const request = { ...order, pod: { ...order.pod, uid }, clones: [{ ...clone, groupAccess: 'grant' as const }] }
      return clones
        .attach(request, NEVER, () => {})
        .then(
          () => 'made',
          (error: Refusal) => error.message,
        )
    }
    return { attach, walks }
  }

  it('runs once for all pods with the volume, each of which is refused until it has ended', async () => {
    const { attach, walks } = grantingPlugin()
    expect([await attach('a'), await attach('a'), await attach('b')]).toEqual(Array(3).fill('is being walked'))
    expect(walks).toHaveLength(1)
    walks[0]?.({})
    expect([await attach('a'), await attach('b')]).toEqual(['made', 'made'])
  })

  it('runs for two volumes at the same time', async () => {
    const { attach, walks } = grantingPlugin()
    await attach('a')
    await attach('a', 'pvc-2')
    expect(walks).toHaveLength(2)
  })

  it('is reported as waiting while another walk runs', async () => {
    const { attach } = grantingPlugin(1)
    const answers = [await attach('a'), await attach('b', 'pvc-2'), await attach('b', 'pvc-2')]
    const waits = expect.stringContaining('waits until that of another volume of the node has ended')
    expect(answers).toEqual(['is being walked', waits, waits])
  })

  it.each([
    ['hostPath', () => '/srv/data'],
    ['subPath', (uid: string) => `${KUBELET}/pods/${uid}/volume-subpaths/pvc-1/app/0`],
  ])('of a %s runs once for all attempts of a container', async (_, sourceIn) => {
    const { attach, walks } = grantingPlugin()
    for (let attempt = 0; attempt < 3; attempt++) await attach('a', 'pvc-1', sourceIn('a'))
    expect(walks).toHaveLength(1)
  })

  it('is reported to the next attempt of its pod alone if it fails, which starts it again', async () => {
    const { attach, walks } = grantingPlugin()
    await attach('a')
    walks[0]?.({ failure: 'the disk failed' })
    await vi.advanceTimersByTimeAsync(0)
    expect([await attach('b'), await attach('a'), await attach('a')]).toEqual([
      'is being walked',
      'the disk failed',
      'is being walked',
    ])
    expect(walks).toHaveLength(2)
  })
})
