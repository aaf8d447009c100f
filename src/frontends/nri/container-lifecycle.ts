import { CONTAINER_CREATION_GRACE_MS, type RuntimeSnapshot } from '../../container/clone-request.ts'
import { isCloneSource } from '../../container/clone-staging.ts'
import { formatError } from '../../errors/refusal.ts'
import { hasGroupAnnotation } from './annotations.ts'
import { createContainerCreationHandler } from './container-creation.ts'
import type { PodProcessGids } from './cri.ts'
import { isContainerInUserNamespace } from './decide-clones.ts'
import { findMissingClones } from './missing-clones.ts'
import { CONTAINER_STATE_NUMBERS, type Container, type ContainerMount, type PodSandbox } from './protocol.ts'
import { type CloneDecisionSources, createCloneRequestReader, listContainerLogFields } from './request-reader.ts'
import { type CloneService, coalesceCalls } from './worker-tasks.ts'

/** Handles a runtime's calls and events about its containers. The methods other than `create` must not throw. */
export interface ContainerEventHandler {
  /**
   * Is called before the runtime creates a container.
   * @param disconnected aborts when the runtime closes the connection
   * @returns the mounts that replace those at the same destinations; undefined: none
   * @throws {Refusal} if the container must not be created; also as a rejection
   */
  create(
    pod: PodSandbox,
    container: Container,
    disconnected: AbortSignal,
  ): Promise<readonly ContainerMount[] | undefined> | undefined
  /** Is called before the first container of the sandbox is created. */
  onSandboxStarted(pod: PodSandbox): void
  /** The container runs, with mounts of its own. */
  onStarted(pod: PodSandbox, container: Container): void
  /** The container has ended, or will never run. May be called twice. */
  onEnded(container: string): void
  /** All containers of the sandbox have ended. A container that never ran may have no other event. */
  onSandboxStopped(sandbox: string): void
  /** Gets all pods and containers, at each connection, before any other call. */
  synchronize(pods: readonly PodSandbox[], containers: readonly Container[]): void
}

interface ContainerHandlerSettings extends CloneDecisionSources {
  readonly clones: CloneService
  /** Time limit for one container, ms: well below the time after which a runtime continues without its plugin. */
  readonly deadlineMs: number
}

const CREATED_WITHOUT_PLUGIN_REASON =
  'it was created while no "modekeep nri" was asked, or what was on record of it is lost: make the pod again to give it the group'

/** A container that may have clones. All others are ignored. */
interface TrackedContainer {
  readonly sandbox: string
  /** The pod's namespace. */
  readonly namespace: string
  /** Settles once all queued tasks of the container have ended. */
  readonly done: Promise<void>
  /** Its end was reported: runtimes report it twice. */
  readonly isEnded?: true
}

/** Decides which mounts of each container are replaced, and has workers make, release and remove the clones. */
export function createContainerEventHandler({
  clones,
  deadlineMs,
  ...sources
}: ContainerHandlerSettings): ContainerEventHandler {
  const tracked = new Map<string, TrackedContainer>()
  const reconcile = coalesceCalls<RuntimeSnapshot>((snapshot) => clones.reconcile(snapshot))
  let secondReconcile: NodeJS.Timeout | undefined
  /** Records of containers found at a connection are written one after the other, because no container waits for them. */
  let recorded: Promise<void> = Promise.resolve()

  const enqueue = (container: string, run: () => Promise<void>): Promise<void> => {
    const before = tracked.get(container)
    if (before === undefined || before.isEnded) return Promise.resolve()
    const done = before.done.then(run)
    tracked.set(container, { ...before, done })
    return done
  }

  /** Stops tracking the container after `done`, unless a later task was queued. */
  const forgetAfter = (container: string, done: Promise<void>) => {
    void done.then(() => {
      if (tracked.get(container)?.done === done) tracked.delete(container)
    })
  }

  const endContainer = (container: string) => {
    const before = tracked.get(container)
    if (before === undefined || before.isEnded) return
    const done = before.done.then(() => clones.forget(container, before.namespace))
    tracked.set(container, { ...before, done, isEnded: true })
    forgetAfter(container, done)
  }

  /** Records that a running container has no clones. Failures are only logged, because the pod may be deleted meanwhile. */
  async function recordWithout(pod: PodSandbox, container: Container, reason: string): Promise<void> {
    try {
      const volumes = await readPodVolumes(kubeletDir, pod.uid)
      const request = findMissingClones(pod, container, volumes, { kubeletDir })
      if (request !== undefined) await clones.recordWithout(request, reason)
    } catch (error) {
      log('warn', 'failed', { ...listContainerLogFields(pod, container), message: formatError(error) })
    }
  }

  const { kubeletDir, readPodVolumes, log } = sources
  const groups = new SandboxGroupCache(sources.readProcessGroups)

  const create = createContainerCreationHandler({
    clones,
    deadlineMs,
    readRequest: createCloneRequestReader({ ...sources, readProcessGroups: (sandbox) => groups.read(sandbox) }),
    queue: {
      waitForEarlier: (container) => tracked.get(container)?.done ?? Promise.resolve(),
      begin: ({ namespace }, { id, podSandboxId }, done) =>
        void tracked.set(id, { sandbox: podSandboxId, namespace, done }),
      forgetAfter,
      recordWithout: (pod, container, reason) =>
        void enqueue(container.id, () => recordWithout(pod, container, reason)),
    },
    log,
  })

  return {
    create,

    onStarted(pod, container) {
      const { id, podSandboxId } = container
      const { namespace } = pod
      if (!tracked.has(id)) {
        // The runtime was creating it when it sent its container list.
        if (!hasGroupAnnotation(pod.annotations) && !isContainerInUserNamespace(container)) return
        tracked.set(id, { sandbox: podSandboxId, namespace, done: Promise.resolve() })
        if (hasGroupAnnotation(pod.annotations) && isContainerUnmapped(container)) {
          void enqueue(id, () => recordWithout(pod, container, CREATED_WITHOUT_PLUGIN_REASON))
          return
        }
      }
      void enqueue(id, () => clones.release(id, namespace))
    },

    onEnded: endContainer,

    onSandboxStarted({ id, annotations }) {
      if (hasGroupAnnotation(annotations)) groups.prefetch(id)
    },

    onSandboxStopped(sandbox) {
      groups.forget(sandbox)
      for (const [id, container] of [...tracked]) if (container.sandbox === sandbox) endContainer(id)
    },

    synchronize(pods, containers) {
      const sandboxes = new Map(pods.map((pod) => [pod.id, pod]))
      const isAnnotated = ({ podSandboxId }: Container) => {
        const pod = sandboxes.get(podSandboxId)
        return pod !== undefined && hasGroupAnnotation(pod.annotations)
      }
      const before = new Map(tracked)
      tracked.clear()
      for (const container of containers) {
        if (!isAnnotated(container) && !isContainerInUserNamespace(container)) continue
        const { done = Promise.resolve() } = before.get(container.id) ?? {}
        const { namespace = '' } = sandboxes.get(container.podSandboxId) ?? {}
        tracked.set(container.id, { sandbox: container.podSandboxId, namespace, done })
      }
      const unmapped = containers.filter(isContainerUnmapped)
      const snapshot = takeRuntimeSnapshot(containers)
      void reconcile(snapshot)
      clearTimeout(secondReconcile)
      secondReconcile = setTimeout(
        () => void reconcile({ ...snapshot, isLater: true }),
        CONTAINER_CREATION_GRACE_MS,
      ).unref()
      for (const container of unmapped) {
        const pod = sandboxes.get(container.podSandboxId)
        if (
          container.state === CONTAINER_STATE_NUMBERS.stopped ||
          pod === undefined ||
          !hasGroupAnnotation(pod.annotations)
        )
          continue
        void enqueue(container.id, () => {
          recorded = recorded.then(() => recordWithout(pod, container, CREATED_WITHOUT_PLUGIN_REASON))
          return recorded
        })
      }
    },
  }
}

/** Snapshot of the runtime's container list. */
function takeRuntimeSnapshot(containers: readonly Container[]): RuntimeSnapshot {
  const listIds = (isIncluded: (container: Container) => boolean) => containers.filter(isIncluded).map(({ id }) => id)
  return {
    at: Date.now(),
    created: listIds(({ state }) => state === CONTAINER_STATE_NUMBERS.created),
    started: listIds(({ state }) => state !== CONTAINER_STATE_NUMBERS.created),
    unmapped: listIds(isContainerUnmapped),
  }
}

/** Returns whether a container has no clone. Without a list of its mounts that is unknown, and the answer is false. */
function isContainerUnmapped({ id, mounts }: Container): boolean {
  return mounts.length > 0 && !mounts.some(({ source }) => isCloneSource(id, source))
}

/** The runtime sends its event just before it can report the sandbox's status. */
const GROUP_PREFETCH_DELAY_MS = 10
/** No node runs so many sandboxes. */
const MAX_CACHED_SANDBOXES = 10_000

/** Caches the groups of a sandbox, which never change. Prefetched groups do not delay the sandbox's containers. */
class SandboxGroupCache {
  readonly #readGroups: (sandbox: string) => Promise<PodProcessGids | undefined>
  readonly #groups = new Map<string, Promise<PodProcessGids | undefined>>()

  /** @param readGroups must not reject */
  constructor(readGroups: (sandbox: string) => Promise<PodProcessGids | undefined>) {
    this.#readGroups = readGroups
  }

  async read(sandbox: string): Promise<PodProcessGids | undefined> {
    // The prefetch may have come before the runtime could answer.
    return (await this.#groups.get(sandbox)) ?? this.#request(sandbox)
  }

  /** Requests the groups of a new sandbox, before its first container is created. */
  prefetch(sandbox: string): void {
    setTimeout(() => void this.#request(sandbox), GROUP_PREFETCH_DELAY_MS).unref()
  }

  forget(sandbox: string): void {
    this.#groups.delete(sandbox)
  }

  #request(sandbox: string): Promise<PodProcessGids | undefined> {
    if (this.#groups.size >= MAX_CACHED_SANDBOXES) this.#groups.clear()
    const groups = this.#readGroups(sandbox)
    this.#groups.set(sandbox, groups)
    return groups
  }
}
