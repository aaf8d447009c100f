/**
 * Measures a container's processing time, without the time that it waits in modekeep's queues for other containers.
 * `expired` aborts when the limit is reached.
 */
export class DeadlineTimer implements Disposable {
  readonly #limitMs: number
  readonly #controller = new AbortController()
  readonly #isQueued: () => boolean
  #spentMs = 0
  #since = performance.now()
  #timer: NodeJS.Timeout | undefined

  /** @param isQueued returns whether the container waits in a queue now */
  constructor(limitMs: number, isQueued: () => boolean) {
    this.#limitMs = limitMs
    this.#isQueued = isQueued
    this.#arm(Math.min(CHECK_INTERVAL_MS, limitMs))
  }

  get expired(): AbortSignal {
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
    const remainingMs = this.#limitMs - this.#spentMs
    // A timer may fire a fraction of a millisecond early.
    if (remainingMs < 1) this.#controller.abort()
    else this.#arm(Math.min(CHECK_INTERVAL_MS, remainingMs))
  }
}

/** isQueued is called at this interval. */
const CHECK_INTERVAL_MS = 50

/**
 * Runs one call at a time. Of the calls that come while one runs, only the newest is carried out.
 * @returns a function whose promise settles once no call runs or waits
 */
export function coalesceCalls<Argument>(
  run: (argument: Argument) => Promise<void>,
): (argument: Argument) => Promise<void> {
  let isRunning = false
  let next: Argument | undefined
  let done: Promise<void> = Promise.resolve()
  const runAll = async () => {
    isRunning = true
    try {
      for (let current: Argument | undefined = next; current !== undefined; current = next) {
        next = undefined
        await run(current)
      }
    } finally {
      isRunning = false
    }
  }
  return (argument) => {
    next = argument
    if (!isRunning) done = runAll()
    return done
  }
}
