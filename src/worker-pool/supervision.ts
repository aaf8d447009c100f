/** A worker that was killed, because it reported nothing for too long. */
export interface SilentWorker {
  readonly pid: number
  readonly seconds: number
  /** The kernel does not let it end. */
  readonly isLeft: boolean
}

/** What becomes of workers that report nothing. */
export interface Supervision<Job, Outcome> {
  /** Milliseconds, where a worker has not set another limit. */
  readonly patienceMs: number
  /**
   * Returns the job for another worker, which answers for the killed one; undefined: none does. Without `retry` a killed
   * worker counts for all limits until it has ended, and its job has no outcome before.
   */
  readonly retry?: (job: Job, silent: SilentWorker) => Job | undefined
  /** The most killed workers of a namespace that have not ended. */
  readonly maxLeft: number
  /** The outcome of a job of a namespace that has so many; undefined: the job waits. @param pids theirs */
  tooManyLeft(namespace: string, pids: readonly number[], job: Job): Outcome | undefined
}

/** Explains why a job of a namespace is refused. @param pids of its killed workers that have not ended */
export function formatLeft(namespace: string, pids: readonly number[]): string {
  return `${pids.length} processes that worked on volumes of namespace ${namespace} were given up and still wait in the kernel (${pids.join(', ')}): end the processes that keep directories of these volumes locked, or repair their disks or servers`
}

const CHECK_MS = 250
const UNTIL_ENDED_MS = 2000

/** Measures for how long a worker has reported nothing. Counts checks, because this process may itself have been stopped. */
export class Silence {
  readonly #defaultMs: number
  #patienceMs: number
  #silentMs = 0
  #timer: NodeJS.Timeout

  /** @param isOver called once, when the worker has reported nothing for too long */
  constructor(patienceMs: number, isOver: (silentMs: number) => void) {
    this.#defaultMs = patienceMs
    this.#patienceMs = patienceMs
    this.#timer = setInterval(() => {
      this.#silentMs += CHECK_MS
      if (this.#silentMs < this.#patienceMs) return
      this.end()
      isOver(this.#silentMs)
    }, CHECK_MS).unref()
  }

  /** @param patienceMs from now on; null: the usual one; undefined: as before */
  hear(patienceMs?: number | null): void {
    this.#silentMs = 0
    if (patienceMs !== undefined) this.#patienceMs = patienceMs ?? this.#defaultMs
  }

  end(): void {
    clearInterval(this.#timer)
  }
}

/** Killed workers that the kernel does not let end. */
export class LeftWorkers {
  readonly #namespaces = new Map<number, string>()

  /**
   * Waits a moment for the end of a killed worker, and counts it until it has ended.
   * @returns whether it is left
   */
  async add(pid: number, namespace: string, ended: Promise<void>): Promise<boolean> {
    let hasEnded = false
    const end = ended.then(() => {
      hasEnded = true
      this.#namespaces.delete(pid)
    })
    await Promise.race([end, new Promise((resolve) => setTimeout(resolve, UNTIL_ENDED_MS))])
    if (!hasEnded) this.#namespaces.set(pid, namespace)
    return !hasEnded
  }

  of(namespace: string): number[] {
    return [...this.#namespaces].flatMap(([pid, its]) => (its === namespace ? [pid] : []))
  }
}
