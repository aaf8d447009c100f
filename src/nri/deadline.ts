import {
  type AttachStep,
  type CloneRequest,
  type ContainerCloneRequest,
  createCloneFault,
  findCloneRemedy,
} from '../container-mount/clone-request.ts'
import { createFault } from '../errors/fault.ts'
import { Refusal } from '../errors/refusal.ts'
import { prefixWithAnnotation } from './annotations.ts'
import type { PodSandbox } from './protocol.ts'

const UNRESPONSIVE = 'did not answer in time: kubelet tries again; look at its disk or server, or'
const WORKERS_BLOCKED =
  "could not be mapped, as modekeep's workers wait for other volumes that do not answer: see modekeep's log on the node, or"
const WORKER_NOT_STARTED =
  "could not be mapped in time, as modekeep's worker process did not begin: kubelet tries again; the node is short of processor time or memory"

export const CONNECTION_CLOSED = 'the runtime closed the connection before it had an answer'

const SLOW_STEPS: Readonly<Record<Exclude<AttachStep['step'], 'open'>, string>> = {
  lock: 'another job of the same container',
  records: "modekeep's records on the node's disk",
  attach: 'the making of the mapped mount',
}

/** Progress of the worker task that makes a container's clones. */
export interface AttachProgress {
  readonly isWaiting: boolean
  readonly isBlocked: boolean
  readonly progress: AttachStep | undefined
}

/** State of a container's creation when its deadline passed. */
interface DeadlineContext {
  /** Undefined until all input of the decision was read. */
  readonly request: ContainerCloneRequest | undefined
  /** The input that was being read last. */
  readonly reading: string
  /** Undefined if no worker task was started. */
  readonly task: AttachProgress | undefined
}

/** Names the slow step: reading input, a blocked worker, or the volume that did not respond. */
export function createDeadlineRefusal(
  { annotations }: PodSandbox,
  { request, reading, task }: DeadlineContext,
): Refusal {
  if (request === undefined) {
    const text = `modekeep had no time to read what the volumes need (${reading}): kubelet tries again; see its log on the node`
    return prefixWithAnnotation(annotations, Refusal.of('map-late', text))
  }
  const { clones } = request
  const refuseAll = (text: string) =>
    new Refusal(clones.map((clone) => createCloneFault(clone, createFault('map-late', text))))
  const refuseWithRemedy = (refused: readonly CloneRequest[], text: string) =>
    new Refusal(
      refused.map((clone) =>
        createCloneFault(clone, createFault('map-unresponsive', `${text} ${findCloneRemedy(clone)}`)),
      ),
    )
  if (task?.isBlocked) return refuseWithRemedy(clones, WORKERS_BLOCKED)
  if (task !== undefined && task.progress === undefined) return refuseAll(WORKER_NOT_STARTED)
  const { step = 'open', volume } = task?.progress ?? {}
  if (step !== 'open') return refuseAll(`was not mapped in time, as ${SLOW_STEPS[step]} took long: kubelet tries again`)
  return refuseWithRemedy(
    clones.filter((_, index) => volume === undefined || index === volume),
    UNRESPONSIVE,
  )
}

/** Rejects when the deadline aborts. */
export function rejectAtDeadline(deadline: AbortSignal, createRefusal: () => Refusal): Promise<never> {
  const { promise, reject } = Promise.withResolvers<never>()
  deadline.addEventListener('abort', () => reject(createRefusal()), { once: true })
  return promise
}

/**
 * Measures a container's processing time, without the time that it waits in modekeep's queues for other containers.
 * `expired` aborts when the limit is reached.
 */
export class DeadlineTimer implements Disposable {
  readonly #limitMs: number
  readonly #controller = new AbortController()
  readonly #isQueued: () => boolean
  #spentMs = 0
  #since = performance.now()
  #timer: NodeJS.Timeout | undefined

  /** @param isQueued returns whether the container waits in a queue now */
  constructor(limitMs: number, isQueued: () => boolean) {
    this.#limitMs = limitMs
    this.#isQueued = isQueued
    this.#arm(Math.min(CHECK_INTERVAL_MS, limitMs))
  }

  get expired(): AbortSignal {
    return this.#controller.signal
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer)
  }

  #arm(ms: number): void {
    this.#timer = setTimeout(() => this.#tick(), ms)
  }

  #tick(): void {
    const now = performance.now()
    if (!this.#isQueued()) this.#spentMs += now - this.#since
    this.#since = now
    const remainingMs = this.#limitMs - this.#spentMs
    // A timer may fire a fraction of a millisecond early.
    if (remainingMs < 1) this.#controller.abort()
    else this.#arm(Math.min(CHECK_INTERVAL_MS, remainingMs))
  }
}

/** isQueued is called at this interval. */
const CHECK_INTERVAL_MS = 50
