import { type CloneOrder, type ContainerOrder, LEAVE_OUT, refusalFor } from '../container-mount/order.ts'
import { Refusal } from '../refusal/refusal.ts'

const STILL_HANGS = `has not answered since an earlier attempt: look at its disk or server, or ${LEAVE_OUT}`
export const NO_ANSWER = `did not answer in time: kubelet tries again; look at its disk or server, or ${LEAVE_OUT}`

/** Volumes that somebody waits for whose time is up: the runtime has everybody wait meanwhile, so nobody else does. */
export class Hanging {
  readonly #volumes = new Map<string, number>()

  /** Until it is disposed of, `late` has its volumes hang. */
  from(order: ContainerOrder, late: AbortSignal): Disposable {
    const names = order.clones.map((clone) => nameOf(order, clone))
    let hung: readonly string[] = []
    const hang = () => {
      hung = names
      for (const name of hung) this.#volumes.set(name, (this.#volumes.get(name) ?? 0) + 1)
    }
    late.addEventListener('abort', hang, { once: true })
    return {
      [Symbol.dispose]: () => {
        late.removeEventListener('abort', hang)
        for (const name of hung) {
          const left = (this.#volumes.get(name) ?? 1) - 1
          if (left > 0) this.#volumes.set(name, left)
          else this.#volumes.delete(name)
        }
      },
    }
  }

  /** @throws {Refusal} where one of its volumes hangs */
  refuse(order: ContainerOrder): void {
    const faults = order.clones.filter((clone) => this.#volumes.has(nameOf(order, clone)))
    if (faults.length > 0) throw new Refusal(faults.map((clone) => refusalFor(clone, STILL_HANGS)))
  }
}

/** Of a claim the same in each pod. */
function nameOf({ pod }: ContainerOrder, { volume, source }: CloneOrder): string {
  return JSON.stringify([pod.namespace, volume, source.includes('~empty-dir/') ? pod.uid : ''])
}
