import { resolveWithinTimeout } from '../kernel/waiting.ts'
import type { UnkillableProcesses } from '../kernel/worker-process.ts'

/** A worker that was killed because it reported nothing for too long. */
export interface UnresponsiveWorker {
  readonly pid: number
  readonly seconds: number
  /** The process still exists, because the kernel has not ended it. */
  readonly isLeft: boolean
}

/** Policy for unresponsive workers. */
export interface WorkerSupervision<Job, Outcome> {
  /** Default limit of a worker that has not set another one. */
  readonly patienceMs: number
  /**
   * Returns the task that another worker runs in place of the killed one; undefined: none. Without `retry` a killed worker
   * counts for all limits until it has ended, and its task has no outcome before.
   */
  readonly retry?: (job: Job, silent: UnresponsiveWorker) => Job | undefined
  /** Returns the outcome of a task that is not retried; undefined: that of a crashed worker. */
  createOutcome?(job: Job, silent: UnresponsiveWorker): Outcome | undefined
  /** Returns the owner of a task whose killed workers do not count for a namespace. An owner may have one of them. */
  findOwner?(job: Job): string | undefined
  /** Limit of a namespace's killed workers that have not ended. */
  readonly maxLeft: number
  /** Returns the outcome of a task whose namespace or owner has reached the limit; undefined: the task waits. */
  refuseTooManyLeft(namespace: string, pids: readonly number[], job: Job): Outcome | undefined
}

const WORKER_END_TIMEOUT_MS = 2000

/**
 * Waits at most 2 s for the end of a killed worker. After that the worker counts as left until it has ended.
 * @returns whether it is left
 */
export async function countWorkerIfUnkillable(
  left: UnkillableProcesses,
  pid: number,
  owner: string,
  ended: Promise<void>,
): Promise<boolean> {
  const hasEnded = await resolveWithinTimeout(
    WORKER_END_TIMEOUT_MS,
    ended.then(() => true),
  )
  if (!hasEnded) left.add(pid, owner, ended)
  return !hasEnded
}

/** Returns the outcome of a task whose owner or namespace has too many killed workers that have not ended. */
export function refuseIfTooManyUnkillableWorkers<Job, Outcome>(
  supervision: WorkerSupervision<Job, Outcome> | undefined,
  left: UnkillableProcesses,
  job: Job,
  namespace: string,
): Outcome | undefined {
  const taskOwner = supervision?.findOwner?.(job)
  const owner = taskOwner ?? namespace
  const pids = owner === '' ? [] : left.of(owner)
  const maxLeft = taskOwner === undefined ? (supervision?.maxLeft ?? Number.POSITIVE_INFINITY) : 1
  return pids.length < maxLeft ? undefined : supervision?.refuseTooManyLeft(owner, pids, job)
}
