import {
  type ContainerCloneOutcome,
  type ContainerCloneRequest,
  createCloneFault,
  PendingGrantRefusal,
} from '../../container/clone-request.ts'
import { createFault } from '../../errors/fault.ts'
import { formatError, Refusal } from '../../errors/refusal.ts'
import { restrictMountOptions } from '../../kernel/mount-table/mount-flags.ts'
import { FairSemaphore } from '../../kernel/waiting.ts'
import type { LogEvent } from '../../log/call-log.ts'
import { isGroupOptional, prefixFaultsWithAnnotation } from './annotations.ts'
import { mayContainerNeedClone } from './decide-clones.ts'
import type { Container, ContainerMount, PodSandbox } from './protocol.ts'
import {
  type CloneTaskProgress,
  CONNECTION_CLOSED_MESSAGE,
  createDeadlineRefusal,
  RefusedContainers,
  UnresponsiveVolumes,
} from './refused-containers.ts'
import { type createCloneRequestReader, listContainerLogFields } from './request-reader.ts'
import type { CloneService } from './worker-tasks.ts'

/** Runs the tasks of each container one after the other. */
interface ContainerTaskQueue {
  /** Settles once the container's earlier tasks have ended. */
  waitForEarlier(container: string): Promise<void>
  /** Tracks the container. Its later tasks run after `done`. */
  begin(pod: PodSandbox, container: Container, done: Promise<void>): void
  /** Stops tracking the container after `done`, unless a later task was queued. */
  forgetAfter(container: string, done: Promise<void>): void
  /** Queues the record that the container runs without its group. */
  recordWithout(pod: PodSandbox, container: Container, reason: string): void
}

interface ContainerCreationSettings {
  readonly clones: CloneService
  readonly deadlineMs: number
  readonly readRequest: ReturnType<typeof createCloneRequestReader>
  readonly queue: ContainerTaskQueue
  readonly log: LogEvent
}

const POD_STALLED_FAULT = createFault(
  'map-unresponsive',
  'is not mapped while a volume of the same pod, or the same volume of another pod, does not answer',
  'kubelet tries again',
)

/** Input of so many containers is read concurrently. Each takes milliseconds. */
const MAX_CONCURRENT_INPUT_READS = 4

/** Returns the function that answers the runtime's CreateContainer calls. */
export function createContainerCreationHandler({
  clones,
  deadlineMs,
  readRequest,
  queue,
  log,
}: ContainerCreationSettings) {
  const unresponsive = new UnresponsiveVolumes()
  const refused = new RefusedContainers()
  const readTurns = new FairSemaphore(MAX_CONCURRENT_INPUT_READS)

  /** @param made is not cancelled at the deadline: clones that it makes later are removed */
  async function answer(
    made: Promise<readonly ContainerMount[] | undefined>,
    expired: Promise<never>,
    pod: PodSandbox,
    container: Container,
  ): Promise<readonly ContainerMount[] | undefined> {
    try {
      return await Promise.race([made, expired])
    } catch (error) {
      const isOptional = mayStartWithoutGroup(pod) && !(error instanceof PendingGrantRefusal)
      const level = isOptional ? 'warn' : 'error'
      const event = level === 'warn' ? 'without' : 'refused'
      const isUnexpected = error instanceof Refusal ? {} : { unexpected: true }
      log(level, event, { ...listContainerLogFields(pod, container), message: formatError(error), ...isUnexpected })
      if (level === 'warn') {
        queue.recordWithout(pod, container, formatError(error))
        return undefined
      }
      const refusal =
        error instanceof Refusal
          ? error
          : Refusal.of('internal', 'modekeep failed', 'see its log on the node', formatError(error))
      throw prefixFaultsWithAnnotation(pod.annotations, refusal)
    }
  }

  return (pod: PodSandbox, container: Container, disconnected: AbortSignal) => {
    if (!mayContainerNeedClone(pod, container)) return undefined
    const remembered = refused.find(pod, container)
    let request: ContainerCloneRequest | undefined
    let reading = 'those of other containers came first'
    let task: CloneTaskProgress | undefined
    let isQueued = false
    let hasBegun = false
    const timer = new ContainerDeadlineTimer(
      deadlineMs,
      () => isQueued || (task?.isWaiting === true && !task.isBlocked),
    )
    const deadline = AbortSignal.any([timer.expired, disconnected])
    // A combined signal keeps its listeners, and all that they use, until it aborts: here until the connection ends.
    const settled = new AbortController()
    const atDeadline = (run: () => void) =>
      deadline.addEventListener('abort', run, { once: true, signal: settled.signal })

    const remember = (refusal: Refusal) => {
      const failed = request
      const retry = (giveUp: AbortSignal) =>
        failed === undefined ? readRequest(pod, container) : clones.check(failed, giveUp)
      refused.remember(pod, container, { refusal, request }, retry)
      return refusal
    }
    const read = async () => {
      isQueued = true
      using turn = await readTurns.take()
      isQueued = false
      deadline.throwIfAborted()
      // Another container may read from the deadline on, even if this one's input never comes.
      atDeadline(() => turn[Symbol.dispose]())
      return await readRequest(pod, container, (input) => {
        reading = input
      })
    }
    const attach = async () => {
      request = await read()
      if (request === undefined) return undefined
      unresponsive.refuseIfUnresponsive(request)
      if (refused.isStalled(pod, container, request)) {
        throw remember(new Refusal(request.clones.map((clone) => createCloneFault(clone, POD_STALLED_FAULT))))
      }
      deadline.throwIfAborted()
      hasBegun = true
      const attaching = clones.attach(request, deadline, (running) => {
        task = running
      })
      const { mounts } = await unresponsive.watch(request, timer.expired, attaching)
      deadline.throwIfAborted()
      const without = request.clones.flatMap(({ volume }, index) => {
        const outcome = mounts[index]
        return outcome?.do === 'without' ? [{ volume, message: outcome.why }] : []
      })
      if (without.length > 0) log('warn', 'without', { ...listContainerLogFields(pod, container), volumes: without })
      return listReplacementMounts(request, mounts)
    }

    const before = queue.waitForEarlier(container.id)
    const made = remembered === undefined ? before.then(attach) : Promise.reject<undefined>(remembered)
    // Removes what a failed or cancelled attempt has made, because the runtime may send no event about such a container.
    const cleanedUp = made.then(
      () => {},
      () => (hasBegun ? clones.forget(container.id, pod.namespace) : undefined),
    )
    const done = before.then(() => cleanedUp)
    queue.begin(pod, container, done)
    // The runtime sends no event when a refused container ends: kubelet creates another one.
    made.catch((error) => {
      if (!mayStartWithoutGroup(pod) || error instanceof PendingGrantRefusal) queue.forgetAfter(container.id, done)
    })
    const startedAt = performance.now()
    const late = Promise.withResolvers<never>()
    atDeadline(() => {
      const refusal = createDeadlineRefusal(pod, { request, reading, task })
      // On a node without free processor time the runtime may close the connection before this thread's own deadline.
      if (!disconnected.aborted || performance.now() - startedAt >= deadlineMs) remember(refusal)
      late.reject(disconnected.aborted ? Refusal.of('map-late', CONNECTION_CLOSED_MESSAGE) : refusal)
    })
    const answered = answer(made, late.promise, pod, container)
    const settle = () => {
      timer[Symbol.dispose]()
      // Without a reason, an error with its stack is made for each container.
      settled.abort('settled')
    }
    answered.then(settle, settle)
    return answered
  }
}

function listReplacementMounts(
  { clones }: ContainerCloneRequest,
  outcomes: ContainerCloneOutcome['mounts'],
): ContainerMount[] {
  return clones.flatMap(({ destination, options }, index): ContainerMount[] => {
    const outcome = outcomes[index]
    if (outcome?.do !== 'replace') return []
    const restricted = restrictMountOptions(options, outcome.restrictions ?? [])
    return [{ destination, type: 'bind', source: outcome.source, options: restricted }]
  })
}

function mayStartWithoutGroup({ annotations }: PodSandbox): boolean {
  try {
    return isGroupOptional(annotations)
  } catch {
    return false
  }
}

/**
 * Measures a container's processing time, without the time that it waits in modekeep's queues for other containers.
 * `expired` aborts when the limit is reached.
 */
class ContainerDeadlineTimer implements Disposable {
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
    this.#arm(Math.min(DEADLINE_CHECK_INTERVAL_MS, limitMs))
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
    else this.#arm(Math.min(DEADLINE_CHECK_INTERVAL_MS, remainingMs))
  }
}

/** isQueued is called at this interval. */
const DEADLINE_CHECK_INTERVAL_MS = 50
