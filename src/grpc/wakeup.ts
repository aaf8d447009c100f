import { setTimeout } from 'node:timers/promises'

/** Lets one waiter sleep until `wake` is called. A wake without a sleeper ends the next sleep at once. */
export class Wakeup {
  #awake = new AbortController()

  wake(): void {
    this.#awake.abort()
  }

  async sleep(maxMs: number): Promise<void> {
    await setTimeout(maxMs, undefined, { signal: this.#awake.signal }).catch(() => {})
    this.#awake = new AbortController()
  }
}
