import { readFileSync } from 'node:fs'

/** Milliseconds. The kernel tells only a parent that a process has ended, and a daemon has none that runs. */
const PAUSE = 1000

/** Calls back within about a second after one of some processes has ended. */
export class ProcessWatch {
  readonly #ended: () => void
  /** By pid: when it started, which tells it from a later process of that number. */
  #processes = new Map<number, string>()
  #timer: NodeJS.Timeout | undefined

  constructor(ended: () => void) {
    this.#ended = ended
  }

  /** Watches these processes and no others; one that has ended already is told of. */
  follow(pids: readonly number[]): void {
    this.#processes = new Map(pids.map((pid) => [pid, this.#processes.get(pid) ?? startOf(pid) ?? GONE]))
    clearInterval(this.#timer)
    this.#timer = pids.length === 0 ? undefined : setInterval(() => this.#look(), PAUSE).unref()
  }

  close(): void {
    this.follow([])
  }

  #look(): void {
    const gone = [...this.#processes].filter(([pid, start]) => startOf(pid) !== start)
    // Told once: what becomes of it is for the next `follow` to say.
    for (const [pid] of gone) this.#processes.delete(pid)
    if (gone.length > 0) this.#ended()
  }
}

const GONE = 'gone'

/** Undefined for one that has ended, waited for or not. */
function startOf(pid: number): string | undefined {
  try {
    // proc(5): the state and the time of the start are the first and the twentieth after the name.
    const fields = readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ').at(-1)?.split(' ') ?? []
    return /^[ZX]$/.test(fields[0] ?? 'X') ? undefined : fields[19]
  } catch {
    return undefined
  }
}
