import {
  type CloneAttachStep,
  type CloneRequest,
  type ContainerCloneRequest,
  createCloneFault,
  findCloneRemedy,
} from '../../container/clone-request.ts'
import { createFault } from '../../errors/fault.ts'
import { Refusal } from '../../errors/refusal.ts'
import { prefixFaultsWithAnnotation } from './annotations.ts'
import type { Container, PodSandbox } from './protocol.ts'

/** Refusal of a container whose volumes took too long. */
interface RememberedRefusal {
  readonly pod: string
  readonly volumes: ReadonlySet<string>
  readonly refusal: Refusal
}

/** Beyond this limit the oldest entry is forgotten. */
const MAX_REMEMBERED_REFUSALS = 4096

/** A refusal is remembered for at most this time if its background retry has no result. */
export const REFUSAL_LIFETIME_MS = 60_000

/**
 * Remembers containers that were refused because something took too long. Kubelet retries such a container under another id,
 * and the runtime creates no other container meanwhile. Further attempts are therefore refused at once, until a retry in
 * the background ends. The pod and its volumes are remembered too, so that each makes the runtime wait once. The entries
 * outlive a connection to the runtime.
 */
export class RefusedContainers {
  readonly #entries = new Map<string, RememberedRefusal>()
  /** Containers whose background retry has ended. `isStalled` returns false for them. */
  readonly #cleared = new Set<string>()

  /** Finds the refusal of an earlier attempt of the same container. */
  find(pod: PodSandbox, container: Container): Refusal | undefined {
    return this.#entries.get(formatContainerKey(pod, container))?.refusal
  }

  /** Returns whether another container of the pod, or another user of a volume, has made the runtime wait. */
  isStalled(pod: PodSandbox, container: Container, request: ContainerCloneRequest): boolean {
    if (this.#entries.size === 0 || this.#cleared.has(formatContainerKey(pod, container))) return false
    const volumes = listSharedVolumeKeys(request)
    return this.#entries.values().some((entry) => entry.pod === pod.uid || !entry.volumes.isDisjointFrom(volumes))
  }

  /** @param retry runs in the background, and must settle once `giveUp` aborts */
  remember(
    pod: PodSandbox,
    container: Container,
    { refusal, request }: { refusal: Refusal; request: ContainerCloneRequest | undefined },
    retry: (giveUp: AbortSignal) => Promise<unknown>,
  ): void {
    const key = formatContainerKey(pod, container)
    if (this.#entries.has(key)) return
    const volumes = request === undefined ? new Set<string>() : listSharedVolumeKeys(request)
    const entry: RememberedRefusal = { pod: pod.uid, volumes, refusal }
    if (this.#entries.size >= MAX_REMEMBERED_REFUSALS) this.#entries.delete(this.#entries.keys().next().value ?? '')
    this.#entries.set(key, entry)
    const giveUp = new AbortController()
    const timer = setTimeout(() => {
      this.#forget(key, entry)
      giveUp.abort()
    }, REFUSAL_LIFETIME_MS).unref()
    const clear = () => {
      clearTimeout(timer)
      if (giveUp.signal.aborted) return
      this.#forget(key, entry)
      if (this.#cleared.size >= MAX_REMEMBERED_REFUSALS) this.#cleared.clear()
      this.#cleared.add(key)
      setTimeout(() => this.#cleared.delete(key), REFUSAL_LIFETIME_MS).unref()
    }
    // A retry that is refused got an answer from the volume too. The next attempt reports it.
    retry(giveUp.signal).then(clear, clear)
  }

  #forget(key: string, entry: RememberedRefusal): void {
    if (this.#entries.get(key) === entry) this.#entries.delete(key)
  }
}

const formatContainerKey = (pod: PodSandbox, { name }: Container) => `${pod.uid}/${name}`

/** Kubelet names a claim's volume after its PersistentVolume, so pods of one namespace share the volume of a name. */
export function listSharedVolumeKeys({ clones, pod }: Pick<ContainerCloneRequest, 'clones' | 'pod'>): Set<string> {
  const names = clones.flatMap(({ source }) => {
    const [, plugin, name] = /\/volumes\/([^/]+)\/([^/]+)/.exec(source) ?? []
    return plugin === undefined || plugin === 'kubernetes.io~empty-dir' ? [] : [`${pod.namespace}/${plugin}/${name}`]
  })
  return new Set(names)
}

/**
 * Volumes of tasks that still run after their deadline. The runtime creates no other container meanwhile, so further
 * containers do not wait for them. Which volume of a task hangs is unknown, so only containers that need all of them are refused.
 */
export class UnresponsiveVolumes {
  /** For each task past its deadline, its volumes. */
  readonly #late = new Set<ReadonlySet<string>>()

  /** Awaits a task. From the deadline until the task ends, the volumes of its request count as unresponsive. */
  async watch<Result>(request: ContainerCloneRequest, deadline: AbortSignal, task: Promise<Result>): Promise<Result> {
    const volumes = listVolumeKeys(request)
    const add = () => void this.#late.add(volumes)
    deadline.addEventListener('abort', add, { once: true })
    try {
      return await task
    } finally {
      deadline.removeEventListener('abort', add)
      this.#late.delete(volumes)
    }
  }

  /** @throws {Refusal} if a task is past its deadline and the request has all volumes of that task: one of them does not respond */
  refuseIfUnresponsive(request: ContainerCloneRequest): void {
    const needed = listVolumeKeys(request)
    const late = [...this.#late].filter((volumes) => volumes.isSubsetOf(needed))
    const unresponsive = new Set(late.flatMap((volumes) => [...volumes]))
    const faults = request.clones.filter(({ volume }) => unresponsive.has(formatVolumeKey(request, volume)))
    if (faults.length > 0)
      throw new Refusal(
        faults.map((clone) =>
          createCloneFault(
            clone,
            createFault(
              'map-unresponsive',
              'has not answered since an earlier attempt',
              `look at its disk or server, or ${findCloneRemedy(clone)}`,
            ),
          ),
        ),
      )
  }
}

const listVolumeKeys = (request: ContainerCloneRequest) =>
  new Set(request.clones.map(({ volume }) => formatVolumeKey(request, volume)))

const formatVolumeKey = ({ pod }: ContainerCloneRequest, volume: string) => `${pod.uid}/${volume}`

const UNRESPONSIVE_VOLUME_MESSAGE = [
  'did not answer in time',
  'kubelet tries again; look at its disk or server, or',
] as const
const WORKERS_BLOCKED_MESSAGE = [
  "could not be mapped, as modekeep's workers wait for other volumes that do not answer",
  "see modekeep's log on the node, or",
] as const
const WORKER_NOT_STARTED_MESSAGE = [
  "could not be mapped in time, as modekeep's worker process did not begin",
  'kubelet tries again; the node is short of processor time or memory',
] as const

export const CONNECTION_CLOSED_MESSAGE = 'the runtime closed the connection before it had an answer'

const SLOW_STEP_DESCRIPTIONS: Readonly<Record<Exclude<CloneAttachStep['step'], 'open'>, string>> = {
  lock: 'another job of the same container',
  records: "modekeep's records on the node's disk",
  attach: 'the making of the mapped mount',
}

/** Progress of the worker task that makes a container's clones. */
export interface CloneTaskProgress {
  readonly isWaiting: boolean
  readonly isBlocked: boolean
  readonly progress: CloneAttachStep | undefined
}

/** State of a container's creation when its deadline passed. */
interface MissedDeadlineContext {
  /** Undefined until all input of the decision was read. */
  readonly request: ContainerCloneRequest | undefined
  /** The input that was being read last, or why none was. */
  readonly reading: string
  /** Undefined if no worker task was started. */
  readonly task: CloneTaskProgress | undefined
}

/** Names the slow step: reading input, a blocked worker, or the volume that did not respond. */
export function createDeadlineRefusal(
  { annotations }: PodSandbox,
  { request, reading, task }: MissedDeadlineContext,
): Refusal {
  if (request === undefined) {
    const reason = `modekeep had no time to read what the volumes need (${reading})`
    return prefixFaultsWithAnnotation(
      annotations,
      Refusal.of('map-late', reason, 'kubelet tries again; see its log on the node'),
    )
  }
  const { clones } = request
  const refuseAll = ([reason, remedy]: readonly [string, string]) =>
    new Refusal(clones.map((clone) => createCloneFault(clone, createFault('map-late', reason, remedy))))
  const refuseWithRemedy = (refused: readonly CloneRequest[], [reason, start]: readonly [string, string]) =>
    new Refusal(
      refused.map((clone) =>
        createCloneFault(clone, createFault('map-unresponsive', reason, `${start} ${findCloneRemedy(clone)}`)),
      ),
    )
  if (task?.isBlocked) return refuseWithRemedy(clones, WORKERS_BLOCKED_MESSAGE)
  if (task !== undefined && task.progress === undefined) return refuseAll(WORKER_NOT_STARTED_MESSAGE)
  const { step = 'open', volume } = task?.progress ?? {}
  if (step !== 'open')
    return refuseAll([`was not mapped in time, as ${SLOW_STEP_DESCRIPTIONS[step]} took long`, 'kubelet tries again'])
  return refuseWithRemedy(
    clones.filter((_, index) => volume === undefined || index === volume),
    UNRESPONSIVE_VOLUME_MESSAGE,
  )
}
