import { setTimeout } from 'node:timers/promises'

/** Lets one waiter sleep until there is something to do. A wake that comes while nobody sleeps is kept. */
export class Wakeup {
  #due = new AbortController()

  wake(): void {
    this.#due.abort()
  }

  /** @param ms the longest sleep */
  async sleep(ms: number): Promise<void> {
    await setTimeout(ms, undefined, { signal: this.#due.signal }).catch(() => {})
    this.#due = new AbortController()
  }
}
