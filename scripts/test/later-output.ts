/** Lines that wait until another part's output, which may redraw the terminal, has ended. */
export class DelayedOutput {
  #waiting: string[] | undefined = []

  print(line: string): void {
    if (this.#waiting) this.#waiting.push(line)
    else console.log(line)
  }

  /** Prints the lines that waited. All later ones are printed at once. */
  release(): void {
    const lines = this.#waiting ?? []
    this.#waiting = undefined
    for (const line of lines) console.log(line)
  }
}
