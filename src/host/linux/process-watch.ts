import { readProcessStat } from './processes.ts'

/** Milliseconds. The kernel tells only a parent that a process has ended, and a daemon has none that runs. */
const POLL_INTERVAL_MS = 1000

/** A process is gone before the last of its threads has closed its descriptors: till then its mounts look well. */
const CALLBACK_COUNT = 3

/** Calls back within about a second after one of some processes has ended, and a few seconds more. */
export class ProcessWatch {
  readonly #ended: () => void
  /** By pid: when it started, which tells it from a later process of that number. */
  readonly #processes = new Map<number, string>()
  #timer: NodeJS.Timeout | undefined
  #tellings = 0

  constructor(ended: () => void) {
    this.#ended = ended
  }

  /** Watches these processes too, each until it has ended; one that has ended already is told of. */
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
