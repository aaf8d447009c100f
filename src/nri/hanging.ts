import { type ContainerOrder, refusalFor, wayOut } from '../container-mount/order.ts'
import { Refusal } from '../refusal/refusal.ts'

const STILL_HANGS = 'has not answered since an earlier attempt: look at its disk or server, or'

/**
 * What is waited for though its time is up: the runtime has everybody wait meanwhile, so nobody else does. Which volume of
 * a container it is that hangs is not known, so only who needs all of them is kept from waiting.
 */
export class Hanging {
  readonly #waiting = new Set<ReadonlySet<string>>()

  /** Waits for work on an order's volumes; where that lasts until `timeout`, they hang until it is done. */
  async during<Result>(order: ContainerOrder, timeout: AbortSignal, work: Promise<Result>): Promise<Result> {
    const volumes = volumesOf(order)
    const hang = () => void this.#waiting.add(volumes)
    timeout.addEventListener('abort', hang, { once: true })
    try {
      return await work
    } finally {
      timeout.removeEventListener('abort', hang)
      this.#waiting.delete(volumes)
    }
  }

  /** @throws {Refusal} where volumes hang all of which it needs */
  refuse(order: ContainerOrder): void {
    const all = volumesOf(order)
    const hanging = new Set([...this.#waiting].filter((some) => some.isSubsetOf(all)).flatMap((some) => [...some]))
    const faults = order.clones.filter(({ volume }) => hanging.has(nameOf(order, volume)))
    if (faults.length > 0) throw new Refusal(faults.map((one) => refusalFor(one, `${STILL_HANGS} ${wayOut(one)}`)))
  }
}

const volumesOf = (order: ContainerOrder) => new Set(order.clones.map(({ volume }) => nameOf(order, volume)))

const nameOf = ({ pod }: ContainerOrder, volume: string) => `${pod.uid}/${volume}`
