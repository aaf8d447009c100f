import { type ContainerOrder, refusalFor, wayOut } from '../container-mount/order.ts'
import { quoted, Refusal } from '../refusal/refusal.ts'
import { GROUP, isAsking } from './asked.ts'
import type { PodSandbox } from './messages.ts'

const NO_ANSWER = 'did not answer in time: kubelet tries again; look at its disk or server, or'

export const UNHEARD = 'the runtime closed the connection before it had an answer'

/** @param order undefined: it was not known yet what to do */
export function lateText({ annotations }: PodSandbox, order: ContainerOrder | undefined): string | string[] {
  if (order !== undefined) return order.clones.map((one) => refusalFor(one, `${NO_ANSWER} ${wayOut(one)}`))
  const asked = isAsking(annotations) ? `annotation ${GROUP} is ${quoted(annotations[GROUP] ?? '')}, but ` : ''
  return `${asked}modekeep had no time to read what the volumes need: kubelet tries again; see its log on the node`
}

/** Rejects, where that is still of interest, when time is up. */
export function onceLate(late: AbortSignal, why: () => string | string[]): Promise<never> {
  const { promise, reject } = Promise.withResolvers<never>()
  late.addEventListener('abort', () => reject(new Refusal(why())), { once: true })
  return promise
}
