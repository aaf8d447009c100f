/** A job that waits, or that a worker is at. */
export interface Task {
  /** What kind it is. */
  readonly do: string
  /** Of a pod's, where one namespace is not to keep others waiting; '' for all others. */
  readonly namespace: string
}

/** At which a worker is since then, in ms. */
export interface Started extends Task {
  readonly since: number
}

/**
 * How many jobs may run at a time. A walk may take hours and a mount may hang, and what does is not to keep other pods
 * from their volumes: it counts among the quick ones only in the beginning.
 */
export interface Limits {
  readonly quick: number
  /** In ms, from when on a job is a long one. */
  readonly longAfterMs: number
  /** Those of one kind do not stop the others. */
  readonly ofAKind: number
  /** Of those of one namespace: its pods do not stop those of others. */
  readonly ofANamespace: number
  /** Of some kinds fewer: those that nobody waits for. */
  readonly of?: Readonly<Record<string, number>>
  /** Of all kinds together, as each worker takes memory; without: as many as the kinds allow. */
  readonly inAll?: number
  /** From a third of a kind's limit on, a namespace with one running waits: a few namespaces cannot take all workers. */
  readonly isShared?: true
  /** So many workers stay though nobody needs them, started before. */
  readonly warm: number
}

/** Which of those that wait is next, the first of them first; -1: none may start now. Pure. */
export function nextOf(waiting: readonly Task[], running: readonly Started[], now: number, limits: Limits): number {
  const quick = running.filter(({ since }) => now - since < limits.longAfterMs)
  if (quick.length >= limits.quick) return -1
  return waiting.findIndex((task) => !isBlocked(task, running, limits))
}

/** Whether a job cannot start until one that runs has ended, however long that takes. Pure. */
export function isBlocked(task: Task, running: readonly Task[], limits: Limits): boolean {
  const { ofANamespace, inAll = Number.POSITIVE_INFINITY } = limits
  const ofAKind = limits.of?.[task.do] ?? limits.ofAKind
  const sharedFrom = limits.isShared ? Math.ceil(ofAKind / 3) : ofAKind
  if (running.length >= inAll) return true
  const ofKind = running.filter((one) => one.do === task.do).length
  if (ofKind >= ofAKind) return true
  if (task.namespace === '') return false
  const ofNamespace = running.filter(({ namespace }) => namespace === task.namespace).length
  return ofNamespace >= (ofKind >= sharedFrom ? 1 : ofANamespace)
}
