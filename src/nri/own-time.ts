/**
 * Counts the time that is a container's own: it stops while modekeep has the container wait for others.
 * `late` aborts when that time is used up.
 */
export class OwnTime implements Disposable {
  readonly #limitMs: number
  readonly #controller = new AbortController()
  readonly #isQueued: () => boolean
  #spentMs = 0
  #since = performance.now()
  #timer: NodeJS.Timeout | undefined

  /** @param isQueued whether the container waits for modekeep's other work at this moment */
  constructor(limitMs: number, isQueued: () => boolean) {
    this.#limitMs = limitMs
    this.#isQueued = isQueued
    this.#arm(Math.min(STEP_MS, limitMs))
  }

  get late(): AbortSignal {
    return this.#controller.signal
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer)
  }

  #arm(ms: number): void {
    this.#timer = setTimeout(() => this.#tick(), ms)
  }

  #tick(): void {
    const now = performance.now()
    if (!this.#isQueued()) this.#spentMs += now - this.#since
    this.#since = now
    const left = this.#limitMs - this.#spentMs
    // A timer may fire a fraction of a millisecond early.
    if (left < 1) this.#controller.abort()
    else this.#arm(Math.min(STEP_MS, left))
  }
}

/** How often it is checked whether a container waits. */
const STEP_MS = 50
