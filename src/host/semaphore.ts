/** Limits the number of concurrent callers. Waiting callers get their turn in order of arrival. */
export class FairSemaphore {
  readonly #waiting: (() => void)[] = []
  #free: number

  constructor(count: number) {
    this.#free = count
  }

  /** Waits for a turn. Disposing of the result, also repeatedly, ends the turn. */
  async take(): Promise<Disposable> {
    if (this.#free > 0) this.#free--
    else await new Promise<void>((next) => this.#waiting.push(next))
    let isOver = false
    return {
      [Symbol.dispose]: () => {
        if (isOver) return
        isOver = true
        const next = this.#waiting.shift()
        if (next) next()
        else this.#free++
      },
    }
  }
}
