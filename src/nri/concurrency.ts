/** Runs at most a given number of functions at a time, in the order of their calls. */
export class ConcurrencyLimit {
  readonly #limit: number
  readonly #waiting: (() => void)[] = []
  #running = 0

  constructor(limit: number) {
    this.#limit = limit
  }

  /**
   * Runs a function once a slot is free. Its slot is free again when it ends or `deadline` aborts.
   * @param onStart is called just before the function
   */
  async run<Result>(run: () => Promise<Result>, deadline: AbortSignal, onStart: () => void): Promise<Result> {
    if (this.#running >= this.#limit) await new Promise<void>((resolve) => this.#waiting.push(resolve))
    else this.#running++
    onStart()
    const release = createOnce(() => this.#release())
    deadline.addEventListener('abort', release, { once: true })
    try {
      deadline.throwIfAborted()
      return await run()
    } finally {
      deadline.removeEventListener('abort', release)
      release()
    }
  }

  /** Gives the slot to the call that waits longest. */
  #release(): void {
    const waiting = this.#waiting.shift()
    if (waiting === undefined) this.#running--
    else waiting()
  }
}

function createOnce(run: () => void): () => void {
  let isDone = false
  return () => {
    if (!isDone) run()
    isDone = true
  }
}

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
