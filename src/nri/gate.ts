/** Lets a few pieces of work run at a time, in the order in which they came. */
export class Gate {
  readonly #width: number
  readonly #waiting: (() => void)[] = []
  #running = 0

  constructor(width: number) {
    this.#width = width
  }

  /**
   * Runs work when it is its turn. Work that goes on after `late` has aborted takes no place any more.
   * @param begun is called when its turn has come
   */
  async run<Result>(work: () => Promise<Result>, late: AbortSignal, begun: () => void): Promise<Result> {
    if (this.#running >= this.#width) await new Promise<void>((resolve) => this.#waiting.push(resolve))
    else this.#running++
    begun()
    const next = once(() => this.#next())
    late.addEventListener('abort', next, { once: true })
    try {
      late.throwIfAborted()
      return await work()
    } finally {
      late.removeEventListener('abort', next)
      next()
    }
  }

  /** A place goes to the one that waits longest. */
  #next(): void {
    const waiting = this.#waiting.shift()
    if (waiting === undefined) this.#running--
    else waiting()
  }
}

function once(work: () => void): () => void {
  let isDone = false
  return () => {
    if (!isDone) work()
    isDone = true
  }
}
