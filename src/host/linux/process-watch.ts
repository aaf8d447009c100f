import { readProcessStat } from './processes.ts'

/** The kernel notifies only a parent when a process ends, and a daemon's parent has ended. So processes are polled. */
const POLL_INTERVAL_MS = 1000

/** A process disappears before its last thread has closed its descriptors. Until then its mounts appear healthy. */
const CALLBACK_COUNT = 3

/** Calls back within about a second after a watched process has ended, and for a few seconds more. */
export class ProcessWatch {
  readonly #ended: () => void
  /** Maps pids to start times, which distinguish a process from a later one with the same pid. */
  readonly #processes = new Map<number, string>()
  #timer: NodeJS.Timeout | undefined
  #tellings = 0

  constructor(ended: () => void) {
    this.#ended = ended
  }

  /** Adds processes to watch until they end. A process that has already ended is reported too. */
  follow(pids: readonly number[]): void {
    for (const pid of pids) {
      if (!this.#processes.has(pid)) this.#processes.set(pid, readProcessStat(pid)?.start ?? ENDED)
    }
    if (this.#processes.size > 0) this.#timer ??= setInterval(() => this.#look(), POLL_INTERVAL_MS).unref()
  }

  close(): void {
    this.#processes.clear()
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  #look(): void {
    const gone = [...this.#processes].filter(([pid, start]) => readProcessStat(pid)?.start !== start)
    for (const [pid] of gone) this.#processes.delete(pid)
    if (gone.length > 0) this.#tellings = CALLBACK_COUNT
    if (this.#tellings > 0) {
      this.#tellings--
      this.#ended()
    } else if (this.#processes.size === 0) {
      this.close()
    }
  }
}

const ENDED = 'gone'
