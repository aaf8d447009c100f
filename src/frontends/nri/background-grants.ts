import type { ContainerCloneRequest } from '../../container/clone-request.ts'
import type { ContainerTaskResult } from '../../container/container-task.ts'
import { createFault } from '../../errors/fault.ts'
import { Refusal } from '../../errors/refusal.ts'
import { listSharedVolumeKeys } from './refused-containers.ts'

/** Beyond this limit the oldest failure is forgotten. */
const MAX_REMEMBERED_FAILURES = 1024

/**
 * Walks that pods request before their containers are created. A volume is walked by one task at a time. The next attempt of a
 * container reports a failed walk, and starts it again.
 */
export class BackgroundGrants {
  readonly #walkedVolumes = new Set<string>()
  /** By pod uid. */
  readonly #failures = new Map<string, Refusal>()

  /**
   * Starts the walk, unless one of its volumes is being walked.
   * @returns why the pod's last walk failed, once
   */
  begin(request: ContainerCloneRequest, walk: () => Promise<ContainerTaskResult>): Refusal | undefined {
    const { pod, clones } = request
    const requested = clones.filter(({ groupAccess }) => groupAccess !== undefined)
    // A hostPath and a subPath have no name of a claim in their path.
    const volumes = listSharedVolumeKeys({ pod, clones: requested }).union(
      new Set(requested.map(({ source }) => source)),
    )
    const failure = this.#failures.get(pod.uid)
    this.#failures.delete(pod.uid)
    if (!volumes.isDisjointFrom(this.#walkedVolumes)) return failure
    for (const volume of volumes) this.#walkedVolumes.add(volume)
    void walk().then((result) => {
      for (const volume of volumes) this.#walkedVolumes.delete(volume)
      if (result.failure !== undefined)
        this.#remember(pod.uid, new Refusal(result.faults ?? createFault('map-grant', result.failure)))
    })
    return failure
  }

  #remember(uid: string, failure: Refusal): void {
    if (this.#failures.size >= MAX_REMEMBERED_FAILURES) this.#failures.delete(this.#failures.keys().next().value ?? '')
    this.#failures.set(uid, failure)
  }
}
