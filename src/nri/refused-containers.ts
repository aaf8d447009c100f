import type { ContainerOrder } from '../container-mount/order.ts'
import type { Refusal } from '../refusal/refusal.ts'
import type { Container, PodSandbox } from './messages.ts'

/** A refusal of a container whose volumes took too long. */
interface Entry {
  readonly pod: string
  readonly volumes: ReadonlySet<string>
  readonly refusal: Refusal
}

/** More are forgotten, the oldest first. */
const MAX_ENTRIES = 4096

/** How long a refusal is remembered while its background try has no result, ms. */
export const REMEMBER_MS = 60_000

/**
 * Remembers containers that were refused as something took too long. Kubelet creates such a container again under another
 * id, and the runtime lets all others wait meanwhile, so the next attempts are refused at once. A try in the background
 * ends that. Volumes and pods that made the runtime wait are remembered with it: each does so once. The memory outlives
 * a connection to the runtime.
 */
export class RefusedContainers {
  readonly #entries = new Map<string, Entry>()
  /** Containers whose background try has succeeded: their pod's other containers do not matter to them. */
  readonly #cleared = new Set<string>()

  /** Returns the refusal of the same container of the same pod. */
  find(pod: PodSandbox, container: Container): Refusal | undefined {
    return this.#entries.get(keyOf(pod, container))?.refusal
  }

  /** Whether another container of the pod, or another user of a volume, has made the runtime wait. */
  isStalled(pod: PodSandbox, container: Container, order: ContainerOrder): boolean {
    if (this.#entries.size === 0 || this.#cleared.has(keyOf(pod, container))) return false
    const volumes = sharedVolumes(order)
    return this.#entries.values().some((entry) => entry.pod === pod.uid || !entry.volumes.isDisjointFrom(volumes))
  }

  /** @param retry tries in the background; it must settle once `giveUp` aborts */
  remember(
    pod: PodSandbox,
    container: Container,
    { refusal, order }: { refusal: Refusal; order: ContainerOrder | undefined },
    retry: (giveUp: AbortSignal) => Promise<unknown>,
  ): void {
    const key = keyOf(pod, container)
    if (this.#entries.has(key)) return
    const volumes = order === undefined ? new Set<string>() : sharedVolumes(order)
    const entry: Entry = { pod: pod.uid, volumes, refusal }
    if (this.#entries.size >= MAX_ENTRIES) this.#entries.delete(this.#entries.keys().next().value ?? '')
    this.#entries.set(key, entry)
    const giveUp = new AbortController()
    const late = setTimeout(() => {
      this.#forget(key, entry)
      giveUp.abort()
    }, REMEMBER_MS).unref()
    const succeeded = () => {
      clearTimeout(late)
      if (giveUp.signal.aborted) return
      this.#forget(key, entry)
      if (this.#cleared.size >= MAX_ENTRIES) this.#cleared.clear()
      this.#cleared.add(key)
      setTimeout(() => this.#cleared.delete(key), REMEMBER_MS).unref()
    }
    // A refusal of the try is an answer of the volume too; the next attempt says it.
    retry(giveUp.signal).then(succeeded, succeeded)
  }

  #forget(key: string, entry: Entry): void {
    if (this.#entries.get(key) === entry) this.#entries.delete(key)
  }
}

const keyOf = (pod: PodSandbox, { name }: Container) => `${pod.uid}/${name}`

/** Kubelet names a claim's volume after its PersistentVolume: pods of a namespace with one name have one volume. */
function sharedVolumes({ clones, pod }: ContainerOrder): Set<string> {
  const names = clones.flatMap(({ source }) => {
    const [, plugin, name] = /\/volumes\/([^/]+)\/([^/]+)/.exec(source) ?? []
    return plugin === undefined || plugin === 'kubernetes.io~empty-dir' ? [] : [`${pod.namespace}/${plugin}/${name}`]
  })
  return new Set(names)
}
