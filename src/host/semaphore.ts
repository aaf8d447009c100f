/** Lets a number of callers work at a time; the others wait in the order in which they came. */
export class FairSemaphore {
  readonly #waiting: (() => void)[] = []
  #free: number

  constructor(count: number) {
    this.#free = count
  }

  /** Waits for a turn, which ends when it is disposed of. */
  async take(): Promise<Disposable> {
    if (this.#free > 0) this.#free--
    else await new Promise<void>((next) => this.#waiting.push(next))
    return {
      [Symbol.dispose]: () => {
        const next = this.#waiting.shift()
        if (next) next()
        else this.#free++
      },
    }
  }
}
