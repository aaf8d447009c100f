import { type ContainerCloneRequest, PendingGrantRefusal } from '../../container/clone-request.ts'
import type { ContainerTaskResult } from '../../container/container-task.ts'
import { createFault } from '../../errors/fault.ts'
import { Refusal } from '../../errors/refusal.ts'
import type { RunningTask } from '../../worker/schedule.ts'
import { listSharedVolumeKeys } from './refused-containers.ts'

/** Beyond this limit the oldest failure is forgotten. */
const MAX_REMEMBERED_FAILURES = 1024

type GrantTask = Pick<RunningTask<ContainerTaskResult>, 'outcome' | 'isWaiting'>

const WAITING_FAULT = createFault(
  'map-grant',
  'the walk that annotation modekeep/group-access requests waits until that of another volume of the node has ended',
  'wait: kubelet tries again, and "modekeep status" on the node shows the walk that runs',
)

/**
 * Walks that pods request before their containers are created. A volume is walked by one task at a time. The next attempt of a
 * container reports a failed walk, and starts it again.
 */
export class BackgroundGrants {
  readonly #walks = new Map<string, GrantTask>()
  /** By pod uid. */
  readonly #failures = new Map<string, Refusal>()

  /**
   * Starts the walk, unless one of its volumes is being walked.
   * @returns why the pod's last walk failed, once, or that the walk waits for another one; undefined: it runs
   */
  begin(request: ContainerCloneRequest, startWalk: () => GrantTask): Refusal | undefined {
    const { pod, clones } = request
    const requested = clones.filter(({ groupAccess }) => groupAccess !== undefined)
    // A hostPath and a subPath have no name of a claim in their path.
    const sources = new Set(requested.map(({ source }) => source))
    const volumes = listSharedVolumeKeys({ pod, clones: requested }).union(sources)
    const failure = this.#failures.get(pod.uid)
    this.#failures.delete(pod.uid)
    const walk = [...volumes].map((volume) => this.#walks.get(volume)).find((one) => one !== undefined)
    const { isWaiting } = walk ?? this.#start(pod.uid, volumes, startWalk())
    if (failure !== undefined || !isWaiting) return failure
    return new PendingGrantRefusal(WAITING_FAULT)
  }

  #start(uid: string, volumes: ReadonlySet<string>, walk: GrantTask): GrantTask {
    for (const volume of volumes) this.#walks.set(volume, walk)
    void walk.outcome.then((result) => {
      for (const volume of volumes) this.#walks.delete(volume)
      if (result.failure !== undefined)
        this.#remember(uid, new Refusal(result.faults ?? createFault('map-grant', result.failure)))
    })
    return walk
  }

  #remember(uid: string, failure: Refusal): void {
    if (this.#failures.size >= MAX_REMEMBERED_FAILURES) this.#failures.delete(this.#failures.keys().next().value ?? '')
    this.#failures.set(uid, failure)
  }
}
