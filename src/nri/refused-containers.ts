import type { ContainerCloneRequest } from '../container-mount/clone-request.ts'
import type { Refusal } from '../errors/refusal.ts'
import type { Container, PodSandbox } from './messages.ts'

/** Refusal of a container whose volumes took too long. */
interface RememberedRefusal {
  readonly pod: string
  readonly volumes: ReadonlySet<string>
  readonly refusal: Refusal
}

/** Beyond this limit the oldest entry is forgotten. */
const MAX_ENTRIES = 4096

/** A refusal is remembered for at most this time if its background retry has no result. */
export const REMEMBER_MS = 60_000

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
    const volumes = findSharedVolumes(request)
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
    const volumes = request === undefined ? new Set<string>() : findSharedVolumes(request)
    const entry: RememberedRefusal = { pod: pod.uid, volumes, refusal }
    if (this.#entries.size >= MAX_ENTRIES) this.#entries.delete(this.#entries.keys().next().value ?? '')
    this.#entries.set(key, entry)
    const giveUp = new AbortController()
    const timer = setTimeout(() => {
      this.#forget(key, entry)
      giveUp.abort()
    }, REMEMBER_MS).unref()
    const clear = () => {
      clearTimeout(timer)
      if (giveUp.signal.aborted) return
      this.#forget(key, entry)
      if (this.#cleared.size >= MAX_ENTRIES) this.#cleared.clear()
      this.#cleared.add(key)
      setTimeout(() => this.#cleared.delete(key), REMEMBER_MS).unref()
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
function findSharedVolumes({ clones, pod }: ContainerCloneRequest): Set<string> {
  const names = clones.flatMap(({ source }) => {
    const [, plugin, name] = /\/volumes\/([^/]+)\/([^/]+)/.exec(source) ?? []
    return plugin === undefined || plugin === 'kubernetes.io~empty-dir' ? [] : [`${pod.namespace}/${plugin}/${name}`]
  })
  return new Set(names)
}
