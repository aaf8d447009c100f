import * as fs from 'node:fs'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import type { AttachStep } from '../../src/container-mount/order.ts'
import type { ContainerJob, ContainerResult } from '../../src/container-mount/work.ts'
import { nodeContainers } from '../../src/nri/containers.ts'
import { clonesBy, DEADLINE_MS, LIMITS, LOST } from '../../src/nri/jobs.ts'
import type { Refusal } from '../../src/refusal/refusal.ts'
import { Workers } from '../../src/worker-pool/workers.ts'
import { containerOf, KUBELET, mountOf, podOf, SOURCES, USUAL, VOLUMES } from './pods.ts'

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance', 'Date'] }))
afterEach(() => void vi.useRealTimers())

/** A worker whose jobs take so long; one that hangs does not end when it is killed. */
function plugin(timeOf: (namespace: string) => number) {
  let most = 0
  let alive = 0
  const workers = new Workers<ContainerJob, ContainerResult, AttachStep>(
    (events) => {
      most = Math.max(most, ++alive)
      return {
        send(job) {
          const namespace = job.do === 'attach' || job.do === 'check' ? job.order.pod.namespace : ''
          const mounts =
            job.do === 'attach' ? job.order.clones.map(() => ({ do: 'replace', source: '/c' }) as const) : []
          if (job.do === 'attach') events.said({ progress: { step: 'open', volume: 0 } })
          const ms = timeOf(namespace)
          if (ms !== Number.POSITIVE_INFINITY) setTimeout(() => events.said({ outcome: { mounts } }), ms)
        },
        kill() {},
        close: () => void alive--,
      }
    },
    LIMITS,
    LOST,
  )
  const containers = nodeContainers({
    kubeletDir: KUBELET,
    clones: clonesBy(workers, () => {}),
    deadlineMs: DEADLINE_MS,
    readConfig: async () => ({ config: { map: [{}] }, faults: [] }),
    lookAtPod: async () => VOLUMES,
    groupsOfPod: async () => undefined,
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

it('none of a hundred containers at once is refused where each job takes 100 ms: waiting for each other does not count', async () => {
  const { create } = plugin(() => 100)
  const all = Promise.all(Array.from({ length: 100 }, (_, at) => create(at, 'shop')))
  await vi.advanceTimersByTimeAsync(60_000)
  expect(new Set(await all)).toEqual(new Set(['made']))
})

it('a container is refused once its own job has passed the deadline', async () => {
  const { create } = plugin(() => DEADLINE_MS + 100)
  const answer = create(0, 'shop')
  await vi.advanceTimersByTimeAsync(DEADLINE_MS + 60)
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
  expect(most()).toBeLessThanOrEqual(LIMITS.inAll ?? 0)
})

it('the memory of all workers stays below the limit of the component', () => {
  const yaml = fs.readFileSync(`${import.meta.dirname}/../../driver/kubernetes/nri/kustomization.yaml`, 'utf8')
  const limitMiB = Number(/limits: \{ memory: (\d+)Mi \}/.exec(yaml)?.[1])
  // A stuck worker takes 12 MiB, the plugin itself less than 128.
  expect((LIMITS.inAll ?? Number.POSITIVE_INFINITY) * 12 + 128).toBeLessThan(limitMiB)
})
