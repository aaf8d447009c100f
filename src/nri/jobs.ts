import type { AttachStep } from '../container-mount/order.ts'
import type { ContainerJob, ContainerResult } from '../container-mount/work.ts'
import { Refusal } from '../refusal/refusal.ts'
import type { Limits } from '../worker-pool/schedule.ts'
import type { Lost, Workers } from '../worker-pool/workers.ts'
import type { Clones } from './clones.ts'
import type { ReadRestrictions } from './own-mounts.ts'

/** How the executable is called as a worker: by the plugin alone, which hands jobs to its stdin. */
export const WORKER = 'nri-worker'

export const LOST: Lost<ContainerResult> = {
  notBegun: { failure: 'modekeep had too much to do to map the volumes in time: kubelet tries again' },
  ended: (how) => ({ failure: `the process that mapped the volumes ${how}: kubelet tries again` }),
}

/**
 * A job takes a few milliseconds. One that waits for a disk or a server does not keep others waiting for long: it counts
 * no more after a moment, and is ended with the deadline of its container.
 */
export const LIMITS: Limits = {
  quick: 4,
  longAfterMs: 200,
  ofAKind: 12,
  ofANamespace: 3,
  of: { check: 6, restrictions: 4 },
  // A worker takes 12 MiB, and the component's limit is 512 MiB.
  inAll: 28,
  sharedFrom: 6,
  warm: 2,
}

export type NriWorkers = Workers<ContainerJob, ContainerResult, AttachStep>

/** How long a container may take, ms: runtimes give their plugins 2 s (containerd's plugin_request_timeout). */
export const DEADLINE_MS = 1500

/** What is done by workers. */
export function clonesBy(
  workers: Pick<NriWorkers, 'run'>,
  failed: (job: ContainerJob['do'], message: string) => void,
): Clones {
  /** Of what nobody waits for: gc and the next connection try again. */
  const tidy = async (job: ContainerJob) => {
    const { failure } = await workers.run(job, '').outcome
    if (failure !== undefined) failed(job.do, failure)
  }
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
    release: (container) => tidy({ do: 'release', container, as: 'started' }),
    forget: (container) => tidy({ do: 'release', container, as: 'gone' }),
    without: (order, why) => tidy({ do: 'without', order, why }),
    reconcile: (known) => tidy({ do: 'reconcile', known }),
  }
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
