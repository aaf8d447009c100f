import { type AttachStep, type ContainerOrder, refusalFor, wayOut } from '../container-mount/order.ts'
import { Refusal } from '../refusal/refusal.ts'
import { askedFor } from './asked.ts'
import type { PodSandbox } from './messages.ts'

const NO_ANSWER = 'did not answer in time: kubelet tries again; look at its disk or server, or'
const BLOCKED =
  "could not be mapped, as modekeep's workers wait for other volumes that do not answer: see modekeep's log on the node, or"
const NO_PROCESSOR =
  "could not be mapped in time, as modekeep's worker process did not begin: kubelet tries again; the node is short of processor time or memory"

export const UNHEARD = 'the runtime closed the connection before it had an answer'

const SLOW: Readonly<Record<Exclude<AttachStep['step'], 'open'>, string>> = {
  lock: 'another job of the same container',
  records: "modekeep's records on the node's disk",
  attach: 'the making of the mapped mount',
}

/** A job of a container, as far as it is known. */
export interface AttachProgress {
  readonly isWaiting: boolean
  readonly isBlocked: boolean
  readonly progress: AttachStep | undefined
}

/** What a container was waiting for when its time was up. */
export interface Slowness {
  /** Undefined: it was not known yet what to do. */
  readonly order: ContainerOrder | undefined
  /** What was being read until then. */
  readonly reading: string
  /** Undefined: no job, or nothing is known of it. */
  readonly job: AttachProgress | undefined
}

/** Says what was slow. */
export function tooLate({ annotations }: PodSandbox, { order, reading, job }: Slowness): Refusal {
  if (order === undefined) {
    const text = `modekeep had no time to read what the volumes need (${reading}): kubelet tries again; see its log on the node`
    return askedFor(annotations, new Refusal(text))
  }
  const { clones } = order
  const forAll = (text: string) => new Refusal(clones.map((one) => refusalFor(one, text)))
  if (job?.isBlocked) return new Refusal(clones.map((one) => refusalFor(one, `${BLOCKED} ${wayOut(one)}`)))
  if (job !== undefined && job.progress === undefined) return forAll(NO_PROCESSOR)
  const { step = 'open', volume } = job?.progress ?? {}
  if (step !== 'open') return forAll(`was not mapped in time, as ${SLOW[step]} took long: kubelet tries again`)
  const slow = clones.filter((_, at) => volume === undefined || at === volume)
  return new Refusal(slow.map((one) => refusalFor(one, `${NO_ANSWER} ${wayOut(one)}`)))
}

/** Rejects, where that is still of interest, when time is up. */
export function onceLate(late: AbortSignal, why: () => Refusal): Promise<never> {
  const { promise, reject } = Promise.withResolvers<never>()
  late.addEventListener('abort', () => reject(why()), { once: true })
  return promise
}
