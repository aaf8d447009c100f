import type { ResponseTimer } from '../kernel/waiting.ts'
import type { WorkerProcess } from '../kernel/worker-process.ts'

/** A waiting or running task. */
export interface ScheduledTask {
  /** Kind of the task. */
  readonly do: string
  /** The pod's namespace, for tasks that count per namespace; '' for all others. */
  readonly namespace: string
}

export interface StartedTask extends ScheduledTask {
  readonly startedAt: number
}

/**
 * Limits of concurrent tasks. A walk may take hours and a mount may hang. Such a task counts as quick only at first, so that
 * it does not keep other pods from their volumes.
 */
export interface WorkerLimits {
  readonly maxQuick: number
  /** A task that runs longer no longer counts as quick. */
  readonly longAfterMs: number
  /** Keeps tasks of one kind from blocking the others. */
  readonly maxPerKind: number
  /** Keeps the pods of one namespace from blocking those of others. Counts tasks of the same kind. */
  readonly maxPerNamespace: number
  /** Replaces `maxPerKind` for some kinds, such as those that no caller waits for. */
  readonly maxByKind?: Readonly<Record<string, number>>
  /** Limit of all kinds together, because each worker takes memory; undefined: none. */
  readonly maxTotal?: number
  /** Above a third of a kind's limit, a namespace may run one task only, so that few namespaces cannot take all workers. */
  readonly isShared?: true
  /** So many idle workers are started in advance and kept. */
  readonly minIdle: number
  /** So many workers are started with the pool, and end when they are idle for long, to free their memory. */
  readonly startedAhead?: number
  /**
   * While others run, a task waits so long for one of them before a further worker is started, one at a time. A start takes
   * longer than several small tasks. Undefined: no wait.
   */
  readonly growAfterMs?: number
}

/** Finds the index of the first waiting task that may start; -1 if none may. Pure. */
export function findNextRunnableTask(
  waiting: readonly ScheduledTask[],
  running: readonly StartedTask[],
  now: number,
  limits: WorkerLimits,
): number {
  const quick = running.filter(({ startedAt }) => now - startedAt < limits.longAfterMs)
  if (quick.length >= limits.maxQuick) return -1
  return waiting.findIndex((task) => !isTaskBlocked(task, running, limits))
}

/** Where quick tasks use all processors, a task waits so many times as long for one of them. */
const MAX_GROWTH_DELAY_FACTOR = 4

/**
 * Returns the milliseconds for which a task still waits for a busy worker before a further one is started; at most 0: none.
 * Pure. Where quick tasks use all processors, a further worker would take their time for its start and wait for their locks.
 * @param since when the task was queued, or a worker was started after that; like `now` by performance.now()
 * @param running none if a worker is idle
 * @param processors of the node
 */
export function computeWorkerStartDelayMs(
  since: number,
  running: readonly { readonly startedAt: number }[],
  now: number,
  { growAfterMs = 0 }: WorkerLimits,
  processors: number,
): number {
  if (running.length === 0) return 0
  // One processor is left to the server, and one to the further worker.
  const mayBeQuick = Math.max(processors - 2, 0)
  const starts = running.map(({ startedAt }) => startedAt).sort((one, other) => one - other)
  const othersSlowAt = (starts[starts.length - 1 - mayBeQuick] ?? Number.NEGATIVE_INFINITY) + growAfterMs
  const latest = since + growAfterMs * MAX_GROWTH_DELAY_FACTOR
  return Math.max(since + growAfterMs, Math.min(othersSlowAt, latest)) - now
}

/** Returns whether a task cannot start before a running one ends. Pure. */
export function isTaskBlocked(task: ScheduledTask, running: readonly ScheduledTask[], limits: WorkerLimits): boolean {
  const { maxPerNamespace, maxTotal = Number.POSITIVE_INFINITY } = limits
  const maxOfKind = limits.maxByKind?.[task.do] ?? limits.maxPerKind
  const sharedFrom = limits.isShared ? Math.ceil(maxOfKind / 3) : maxOfKind
  if (running.length >= maxTotal) return true
  const sameKind = running.filter((other) => other.do === task.do).length
  if (sameKind >= maxOfKind) return true
  if (task.namespace === '') return false
  const sameNamespace = running.filter(({ namespace }) => namespace === task.namespace).length
  return sameNamespace >= (sameKind >= sharedFrom ? 1 : maxPerNamespace)
}

/** Outcomes of tasks that no worker has completed. */
export interface LostTaskOutcomes<Outcome> {
  readonly notStarted: Outcome
  /** The worker ended during the task, whose progress is unknown. @param how phrase for messages */
  createExited(how: string): Outcome
}

/** A waiting or running task. */
export interface RunningTask<Outcome, Progress = never> {
  readonly outcome: Promise<Outcome>
  /** No worker runs it yet. */
  readonly isWaiting: boolean
  /** True if it waits for stuck workers, which were killed and have not ended, or take very long. */
  readonly isBlocked: boolean
  /** Progress that the worker reported last. */
  readonly progress: Progress | undefined
  /** Cancels the task. A waiting task never starts; a running task's worker is killed, and `outcome` settles when it has ended. */
  cancel(): void
}

export interface WorkerTask<Job, Outcome, Progress> {
  readonly do: string
  readonly namespace: string
  job: Job
  /** performance.now() */
  readonly queuedAt: number
  readonly settle: (outcome: Outcome) => void
  /** performance.now(); 0 while the task waits. */
  startedAt: number
  slot: WorkerSlot<Job, Outcome, Progress> | undefined
  progress: Progress | undefined
  responseTimer: ResponseTimer | undefined
}

/** @param namespace as of `ScheduledTask` */
export function createWorkerTask<Job extends { do: string }, Outcome, Progress>(
  job: Job,
  namespace: string,
  settle: (outcome: Outcome) => void,
): WorkerTask<Job, Outcome, Progress> {
  const [queuedAt, startedAt] = [performance.now(), 0]
  const waiting = { slot: undefined, progress: undefined, responseTimer: undefined }
  return { do: job.do, namespace, job, settle, queuedAt, startedAt, ...waiting }
}

/** A worker process and its task. */
export interface WorkerSlot<Job, Outcome, Progress> {
  readonly worker: WorkerProcess<Job>
  task: WorkerTask<Job, Outcome, Progress> | undefined
  /** The worker was killed. Its further reports are ignored. */
  isDying: boolean
  idleTimer: NodeJS.Timeout | undefined
  readonly end: PromiseWithResolvers<void>
}
