import {
  type CloneAttachStep,
  type ContainerCloneOutcome,
  type ContainerCloneRequest,
  type OwnVolumeMountsRequest,
  PendingGrantRefusal,
  type RuntimeSnapshot,
} from '../../container/clone-request.ts'
import type { ContainerTask, ContainerTaskResult } from '../../container/container-task.ts'
import { createFault, renderFault } from '../../errors/fault.ts'
import { Refusal } from '../../errors/refusal.ts'
import type { NriPluginRecord } from '../../state/process-records.ts'
import { createTooManyUnkillableWorkersFault } from '../../worker/given-up.ts'
import type { WorkerPool } from '../../worker/pool.ts'
import type { LostTaskOutcomes, RunningTask, WorkerLimits } from '../../worker/schedule.ts'
import type { WorkerSupervision } from '../../worker/supervision.ts'
import { BackgroundGrants } from './background-grants.ts'
import { type CloneTaskProgress, REFUSAL_LIFETIME_MS } from './refused-containers.ts'

export const LOST_CONTAINER_TASK_OUTCOMES: LostTaskOutcomes<ContainerTaskResult> = {
  notStarted: { failure: 'modekeep had too much to do to map the volumes in time: kubelet tries again' },
  createExited: (how) => ({ failure: `the process that mapped the volumes ${how}: kubelet tries again` }),
}

/**
 * A task takes a few milliseconds. One that waits for a disk or a server stops counting as quick after 200 ms, and is
 * killed at the deadline of its container. If all tasks that access volumes are stuck, one worker is left for the others.
 */
export const NRI_WORKER_LIMITS: WorkerLimits = {
  maxQuick: 4,
  longAfterMs: 200,
  maxPerKind: 7,
  maxPerNamespace: 3,
  maxByKind: { grant: 1, check: 1, restrictions: 2, release: 5, without: 1, reconcile: 1, registration: 1 },
  // A stuck worker keeps its memory: test/attacks/stuck-plugin-memory.test.ts compares it with the component's limit.
  maxTotal: 17,
  isShared: true,
  minIdle: 2,
}

/**
 * Kills a worker at the deadline of its container, or if it reports nothing for `patienceMs`. The worker holds its locks,
 * and counts for the limits, until the kernel ends it.
 */
export function createContainerTaskSupervision(
  patienceMs: number,
): WorkerSupervision<ContainerTask, ContainerTaskResult> {
  return {
    patienceMs: Math.max(REFUSAL_LIFETIME_MS, patienceMs),
    maxLeft: NRI_WORKER_LIMITS.maxPerNamespace,
    // Other tasks wait for a worker, because no container waits for them.
    refuseTooManyLeft: (namespace, pids, task) =>
      task.do === 'attach'
        ? { failure: renderFault(createTooManyUnkillableWorkersFault(`namespace ${namespace}`, pids)) }
        : undefined,
  }
}

type NriWorkerPool = WorkerPool<ContainerTask, ContainerTaskResult, CloneAttachStep>

/** Time limit for one container, ms. Runtimes give their plugins 2 s (containerd's plugin_request_timeout). */
export const CONTAINER_DEADLINE_MS = 1500

/** Is called for each failed task that no container waits for. */
type ReportTaskFailure = (task: ContainerTask['do'], message: string) => void

/** Runs a task that no container waits for. gc and the next connection of the plugin retry a failed one. */
async function runUnawaitedTask(
  workers: Pick<NriWorkerPool, 'run'>,
  reportFailure: ReportTaskFailure,
  task: ContainerTask,
  namespace = '',
): Promise<void> {
  const { failure } = await workers.run(task, namespace && `${task.do} ${namespace}`).outcome
  if (failure !== undefined) reportFailure(task.do, failure)
}

/** Awaits a task, and cancels it when `giveUp` aborts. @throws {Refusal} whose text appears in the pod's events */
async function awaitContainerTask(
  running: RunningTask<ContainerTaskResult, CloneAttachStep>,
  giveUp: AbortSignal,
): Promise<Exclude<ContainerTaskResult, { failure: string }>> {
  const cancel = () => running.cancel()
  giveUp.addEventListener('abort', cancel, { once: true })
  try {
    const result = await running.outcome
    // A worker that was lost reports no faults. The others have logged the details.
    if (result.failure !== undefined) {
      const faults = result.faults ?? createFault('map-late', result.failure)
      throw result.isGrantPending ? new PendingGrantRefusal(faults) : new Refusal(faults)
    }
    return result
  } finally {
    giveUp.removeEventListener('abort', cancel)
  }
}

/** Implements the clone service with tasks of worker processes. */
export function createCloneService(
  workers: Pick<NriWorkerPool, 'run'>,
  reportFailure: ReportTaskFailure,
): CloneService {
  const runUnawaited = (task: ContainerTask, namespace?: string) =>
    runUnawaitedTask(workers, reportFailure, task, namespace)
  const grants = new BackgroundGrants()
  return {
    async attach(request, deadline, onStart) {
      const running = workers.run({ do: 'attach', request }, request.pod.namespace)
      onStart(running)
      try {
        const { mounts = [] } = await awaitContainerTask(running, deadline)
        return { mounts }
      } catch (error) {
        if (!(error instanceof PendingGrantRefusal)) throw error
        const startWalk = () => workers.run({ do: 'grant', request }, `grant ${request.pod.namespace}`)
        throw grants.begin(request, startWalk) ?? error
      }
    },
    async check(request, giveUp) {
      await awaitContainerTask(workers.run({ do: 'check', request }, `check ${request.pod.namespace}`), giveUp)
    },
    release: (container, namespace) => runUnawaited({ do: 'release', container, as: 'started' }, namespace),
    forget: (container, namespace) => runUnawaited({ do: 'release', container, as: 'gone' }, namespace),
    recordWithout: (request, reason) => runUnawaited({ do: 'without', request, why: reason }),
    reconcile: (snapshot) => runUnawaited({ do: 'reconcile', known: snapshot }),
  }
}

/** Returns a function that has a worker record whether the plugin is registered. It never rejects. */
export function createPluginRecordWriter(
  workers: Pick<NriWorkerPool, 'run'>,
  reportFailure: ReportTaskFailure,
): (record: NriPluginRecord) => Promise<void> {
  return (record) => runUnawaitedTask(workers, reportFailure, { do: 'registration', record })
}

/** Returns a function that has a worker read mount options. */
export function createRestrictionsTaskReader(workers: Pick<NriWorkerPool, 'run'>): ReadMountRestrictions {
  return async (request, giveUp) => {
    const running = workers.run({ do: 'restrictions', request }, `restrictions ${request.pod.namespace}`)
    return (await awaitContainerTask(running, giveUp)).restrictions ?? []
  }
}

/** Returns the mount options for each mount of a request. */
export type ReadMountRestrictions = (
  request: OwnVolumeMountsRequest,
  giveUp: AbortSignal,
) => Promise<readonly (readonly string[])[]>

/** Makes and removes clones in worker processes, so that no volume blocks the thread that answers the runtime. */
export interface CloneService {
  /**
   * @param deadline cancels the task when it aborts
   * @param onStart is called once, with the task's progress
   * @throws {Refusal} whose text appears in the pod's events
   */
  attach(
    request: ContainerCloneRequest,
    deadline: AbortSignal,
    onStart: (task: CloneTaskProgress) => void,
  ): Promise<ContainerCloneOutcome>
  /** Opens a container's volumes without making a clone. Settles, also with a refusal, once all of them respond or `giveUp` aborts. */
  check(request: ContainerCloneRequest, giveUp: AbortSignal): Promise<void>
  /** Removes the node's clones of a started container, which has its own mounts of them. Never throws. */
  release(container: string, namespace: string): Promise<void>
  /** Removes a container's clones and its record. Never throws. */
  forget(container: string, namespace: string): Promise<void>
  /** Records that a container runs without its group, unless that is recorded already. Never throws. */
  recordWithout(request: ContainerCloneRequest, reason: string): Promise<void>
  /** Removes clones and records of containers that need them no more. Never throws. */
  reconcile(snapshot: RuntimeSnapshot): Promise<void>
}

/**
 * Runs one call at a time. Of the calls that come while one runs, only the newest is carried out.
 * @returns a function whose promise settles once no call runs or waits
 */
export function coalesceCalls<Argument>(
  run: (argument: Argument) => Promise<void>,
): (argument: Argument) => Promise<void> {
  let isRunning = false
  let next: Argument | undefined
  let done: Promise<void> = Promise.resolve()
  const runAll = async () => {
    isRunning = true
    try {
      for (let current: Argument | undefined = next; current !== undefined; current = next) {
        next = undefined
        await run(current)
      }
    } finally {
      isRunning = false
    }
  }
  return (argument) => {
    next = argument
    if (!isRunning) done = runAll()
    return done
  }
}
