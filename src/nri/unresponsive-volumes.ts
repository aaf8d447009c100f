import { type ContainerCloneRequest, findCloneRemedy, formatRefusal } from '../container-mount/clone-request.ts'
import { Refusal } from '../errors/refusal.ts'

const STILL_UNRESPONSIVE = 'has not answered since an earlier attempt: look at its disk or server, or'

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

  /** @throws {Refusal} if the request needs all volumes of a task that is past its deadline */
  refuseIfUnresponsive(request: ContainerCloneRequest): void {
    const needed = listVolumeKeys(request)
    const late = [...this.#late].filter((volumes) => volumes.isSubsetOf(needed))
    const unresponsive = new Set(late.flatMap((volumes) => [...volumes]))
    const faults = request.clones.filter(({ volume }) => unresponsive.has(formatVolumeKey(request, volume)))
    if (faults.length > 0)
      throw new Refusal(faults.map((clone) => formatRefusal(clone, `${STILL_UNRESPONSIVE} ${findCloneRemedy(clone)}`)))
  }
}

const listVolumeKeys = (request: ContainerCloneRequest) =>
  new Set(request.clones.map(({ volume }) => formatVolumeKey(request, volume)))

const formatVolumeKey = ({ pod }: ContainerCloneRequest, volume: string) => `${pod.uid}/${volume}`
