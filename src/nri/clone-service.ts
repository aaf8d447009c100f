import type { ContainerCloneRequest, ContainerOutcome, RuntimeSnapshot } from '../container-mount/clone-request.ts'
import type { AttachProgress } from './deadline.ts'

/** Makes and removes clones in worker processes, so that no volume blocks the thread that answers the runtime. */
export interface CloneService {
  /**
   * @param deadline cancels the task when it aborts
   * @param onStart is called once, with the task's progress
   * @throws {Refusal} whose text appears in the pod's events
   */
  attach(
    request: ContainerCloneRequest,
    deadline: AbortSignal,
    onStart: (task: AttachProgress) => void,
  ): Promise<ContainerOutcome>
  /** Opens a container's volumes without making a clone. Settles once all of them respond, or `giveUp` aborts. */
  check(request: ContainerCloneRequest, giveUp: AbortSignal): Promise<void>
  /** Removes the node's clones of a started container, which has its own mounts of them. Never throws. */
  release(container: string, namespace: string): Promise<void>
  /** Removes a container's clones and its record. Never throws. */
  forget(container: string, namespace: string): Promise<void>
  /** Records that a container runs without its group, unless that is recorded already. Never throws. */
  recordWithout(request: ContainerCloneRequest, reason: string): Promise<void>
  /** Removes clones and records of containers that need them no more. Never throws. */
  reconcile(snapshot: RuntimeSnapshot): Promise<void>
}
