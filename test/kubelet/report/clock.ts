/** Says how long each part took. */
export class Clock {
  readonly #say: (text: string) => void

  constructor(say: (text: string) => void) {
    this.#say = say
  }

  measure<T>(what: string, work: () => T): T {
    const before = performance.now()
    const result = work()
    this.#tell(what, before)
    return result
  }

  async wait<T>(what: string, work: () => Promise<T>): Promise<T> {
    const before = performance.now()
    try {
      return await work()
    } finally {
      this.#tell(what, before)
    }
  }

  #tell(what: string, before: number): void {
    this.#say(`${((performance.now() - before) / 1000).toFixed(1).padStart(6)} s  ${what}`)
  }
}
