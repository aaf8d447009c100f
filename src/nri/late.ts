import { type ContainerOrder, refusalFor, wayOut } from '../container-mount/order.ts'
import { Refusal } from '../refusal/refusal.ts'
import { askedFor } from './asked.ts'
import type { PodSandbox } from './messages.ts'

const NO_ANSWER = 'did not answer in time: kubelet tries again; look at its disk or server, or'
const NO_TIME = 'modekeep had no time to read what the volumes need: kubelet tries again; see its log on the node'

export const UNHEARD = 'the runtime closed the connection before it had an answer'

/** @param order undefined: it was not known yet what to do */
export function tooLate({ annotations }: PodSandbox, order: ContainerOrder | undefined): Refusal {
  if (order === undefined) return askedFor(annotations, new Refusal(NO_TIME))
  return new Refusal(order.clones.map((one) => refusalFor(one, `${NO_ANSWER} ${wayOut(one)}`)))
}

/** Rejects, where that is still of interest, when time is up. */
export function onceLate(late: AbortSignal, why: () => Refusal): Promise<never> {
  const { promise, reject } = Promise.withResolvers<never>()
  late.addEventListener('abort', () => reject(why()), { once: true })
  return promise
}
