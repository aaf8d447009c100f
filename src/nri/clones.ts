import type { ContainerOrder, ContainerOutcome, Known } from '../container-mount/order.ts'
import type { AttachProgress } from './late.ts'

/** Makes clones and takes them away, elsewhere: nothing of it is done by the thread that answers. */
export interface Clones {
  /**
   * @param late what is not done by then is given up
   * @param begun is called once, with the job, which tells how far it is
   * @throws {Refusal} whose text the pod's event shows
   */
  attach(order: ContainerOrder, late: AbortSignal, begun: (job: AttachProgress) => void): Promise<ContainerOutcome>
  /** Opens what a container would have mapped, and makes nothing. Settles once all of it answers, or `giveUp` aborts. */
  check(order: ContainerOrder, giveUp: AbortSignal): Promise<void>
  /** The node's clones go: the container has its own. Never throws. */
  release(container: string, namespace: string): Promise<void>
  /** What there is of a container goes, its record too. Never throws. */
  forget(container: string, namespace: string): Promise<void>
  /** Keeps on record that a container does without, unless that is on record. Never throws. */
  without(order: ContainerOrder, why: string): Promise<void>
  /** What is left of containers that need it no more goes. Never throws. */
  reconcile(known: Known): Promise<void>
}
