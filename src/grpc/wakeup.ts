/** Lets one waiter sleep until there is something to do. A wake that comes while nobody sleeps is kept. */
export class Wakeup {
  #isDue = false
  #wake: (() => void) | undefined

  wake(): void {
    this.#isDue = true
    this.#wake?.()
  }

  /** @param ms the longest sleep */
  async sleep(ms: number): Promise<void> {
    if (!this.#isDue) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, ms)
        this.#wake = () => {
          clearTimeout(timer)
          resolve()
        }
      })
      this.#wake = undefined
    }
    this.#isDue = false
  }
}
