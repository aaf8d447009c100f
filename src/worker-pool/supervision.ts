import type { LeftProcesses } from '../host/left-processes.ts'
import { within } from '../host/linux/child.ts'
import { formatTooManyLeft } from '../store/given-up.ts'

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
  /** Returns the outcome of a job that no other worker retries; undefined: as of a worker that has crashed. */
  answer?(job: Job, silent: SilentWorker): Outcome | undefined
  /** Returns the owner of a job whose killed workers are not counted for a namespace: one at most is left. */
  ownerOf?(job: Job): string | undefined
  /** The most killed workers of a namespace that have not ended. */
  readonly maxLeft: number
  /** The outcome of a job of a namespace or an owner that has so many; undefined: the job waits. @param pids theirs */
  tooManyLeft(namespace: string, pids: readonly number[], job: Job): Outcome | undefined
}

/** Explains why a job of a namespace is refused. @param pids of its killed workers that have not ended */
export function formatLeft(namespace: string, pids: readonly number[]): string {
  return formatTooManyLeft(`namespace ${namespace}`, pids)
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

/**
 * Waits a moment for the end of a killed worker, and counts it among those that are left until it has ended.
 * @returns whether it is left
 */
export async function countIfLeft(
  left: LeftProcesses,
  pid: number,
  owner: string,
  ended: Promise<void>,
): Promise<boolean> {
  const hasEnded = await within(
    UNTIL_ENDED_MS,
    ended.then(() => true),
  )
  if (!hasEnded) left.add(pid, owner, ended)
  return !hasEnded
}

/** Returns the outcome of a job whose owner or namespace has too many killed workers that have not ended. */
export function refuseIfLeft<Job, Outcome>(
  supervision: Supervision<Job, Outcome> | undefined,
  left: LeftProcesses,
  job: Job,
  namespace: string,
): Outcome | undefined {
  const own = supervision?.ownerOf?.(job)
  const owner = own ?? namespace
  const pids = owner === '' ? [] : left.of(owner)
  const maxLeft = own === undefined ? (supervision?.maxLeft ?? Number.POSITIVE_INFINITY) : 1
  return pids.length < maxLeft ? undefined : supervision?.tooManyLeft(owner, pids, job)
}
