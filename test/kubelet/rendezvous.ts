/** One action for many: it runs once, when everybody who may ask for it has asked, or has gone. */
export class Rendezvous<T> {
  readonly #action: (asked: readonly T[]) => Promise<void>
  readonly #asked: T[] = []
  readonly #done = Promise.withResolvers<void>()
  #waitedFor: number

  constructor(parties: number, action: (asked: readonly T[]) => Promise<void>) {
    this.#waitedFor = parties
    this.#action = action
  }

  ask(...what: readonly T[]): Promise<void> {
    this.#asked.push(...what)
    this.leave()
    return this.#done.promise
  }

  /** Leaves the rendezvous, so that the others do not wait for this case. */
  leave(): void {
    if (--this.#waitedFor === 0) this.#action(this.#asked).then(this.#done.resolve, this.#done.reject)
  }
}
