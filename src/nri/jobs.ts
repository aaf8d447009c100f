import type { AttachStep } from '../container-mount/order.ts'
import type { ContainerJob, ContainerResult } from '../container-mount/work.ts'
import { Refusal } from '../refusal/refusal.ts'
import type { PluginRecord } from '../store/plugin-record.ts'
import type { Limits } from '../worker-pool/schedule.ts'
import { formatLeft, type Supervision } from '../worker-pool/supervision.ts'
import type { Lost, Workers } from '../worker-pool/workers.ts'
import type { Clones } from './clones.ts'
import type { ReadRestrictions } from './own-mounts.ts'
import { REMEMBER_MS } from './refused-containers.ts'

/** How the executable is called as a worker: by the plugin alone, which hands jobs to its stdin. */
export const WORKER = 'nri-worker'

export const LOST: Lost<ContainerResult> = {
  notBegun: { failure: 'modekeep had too much to do to map the volumes in time: kubelet tries again' },
  ended: (how) => ({ failure: `the process that mapped the volumes ${how}: kubelet tries again` }),
}

/**
 * A job takes a few milliseconds. One that waits for a disk or a server does not keep others waiting for long: it counts
 * no more after a moment, and is ended with the deadline of its container. The kinds of jobs that access volumes leave one
 * worker to the others when all of theirs are stuck.
 */
export const LIMITS: Limits = {
  quick: 4,
  longAfterMs: 200,
  ofAKind: 7,
  ofANamespace: 3,
  of: { check: 1, restrictions: 2, release: 5, without: 1, reconcile: 1, registration: 1 },
  // A stuck one takes its memory: test/attacks/stuck-plugin-memory.test.ts compares that with the limit of the component.
  inAll: 16,
  isShared: true,
  warm: 2,
}

/**
 * A worker is killed at the deadline of its container, or if it reports nothing for so long. It has its locks, and counts
 * for the limits, until the kernel lets it end.
 */
export function supervision(patienceMs: number): Supervision<ContainerJob, ContainerResult> {
  return {
    patienceMs: Math.max(REMEMBER_MS, patienceMs),
    maxLeft: LIMITS.ofANamespace,
    // No container waits for the other jobs: they wait.
    tooManyLeft: (namespace, pids, job) => (job.do === 'attach' ? { failure: formatLeft(namespace, pids) } : undefined),
  }
}

export type NriWorkers = Workers<ContainerJob, ContainerResult, AttachStep>

/** How long a container may take, ms: runtimes give their plugins 2 s (containerd's plugin_request_timeout). */
export const DEADLINE_MS = 1500

/** Is called with a job that failed and that no container waits for. */
type Failed = (job: ContainerJob['do'], message: string) => void

/** Of what nobody waits for: gc and the next connection try again. */
async function tidy(
  workers: Pick<NriWorkers, 'run'>,
  failed: Failed,
  job: ContainerJob,
  namespace = '',
): Promise<void> {
  const { failure } = await workers.run(job, namespace && `${job.do} ${namespace}`).outcome
  if (failure !== undefined) failed(job.do, failure)
}

/** What is done by workers. */
export function clonesBy(workers: Pick<NriWorkers, 'run'>, failed: Failed): Clones {
  const tidyUp = (job: ContainerJob, namespace?: string) => tidy(workers, failed, job, namespace)
  return {
    async attach(order, late, begun) {
      const running = workers.run({ do: 'attach', order }, order.pod.namespace)
      begun(running)
      const giveUp = () => running.cancel()
      late.addEventListener('abort', giveUp, { once: true })
      try {
        const result = await running.outcome
        // Its text is for people: the worker has written the rest to the log.
        if (result.failure !== undefined) throw new Refusal(result.failure)
        return { mounts: result.mounts ?? [] }
      } finally {
        late.removeEventListener('abort', giveUp)
      }
    },
    async check(order, giveUp) {
      const running = workers.run({ do: 'check', order }, `check ${order.pod.namespace}`)
      giveUp.addEventListener('abort', () => running.cancel(), { once: true })
      await running.outcome
    },
    release: (container, namespace) => tidyUp({ do: 'release', container, as: 'started' }, namespace),
    forget: (container, namespace) => tidyUp({ do: 'release', container, as: 'gone' }, namespace),
    without: (order, why) => tidyUp({ do: 'without', order, why }),
    reconcile: (known) => tidyUp({ do: 'reconcile', known }),
  }
}

/** Writes by a worker whether the runtime has the plugin registered. @returns a function that never rejects */
export function registrationBy(
  workers: Pick<NriWorkers, 'run'>,
  failed: Failed,
): (record: PluginRecord) => Promise<void> {
  return (record) => tidy(workers, failed, { do: 'registration', record })
}

/** Reads mount options by workers. */
export function restrictionsBy(workers: Pick<NriWorkers, 'run'>): ReadRestrictions {
  return async (request, giveUp) => {
    const running = workers.run({ do: 'restrictions', request }, `restrictions ${request.pod.namespace}`)
    giveUp.addEventListener('abort', () => running.cancel(), { once: true })
    const result = await running.outcome
    if (result.failure !== undefined) throw new Refusal(result.failure)
    return result.restrictions ?? []
  }
}
