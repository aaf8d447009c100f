import { createHash } from 'node:crypto'
import { formatFaultCode } from '../../errors/fault.ts'
import { resolveWithinTimeout } from '../../kernel/waiting.ts'
import type { WorkerPool } from '../../worker/pool.ts'
import type { RunningTask } from '../../worker/schedule.ts'
import {
  CSI_TASK_WORDS,
  type CsiTask,
  type CsiTaskFailure,
  type CsiTaskOutcome,
  type CsiTaskProgress,
} from './worker-tasks.ts'

/** A task that waits or runs for a target. */
interface TargetPathTask {
  readonly kind: CsiTask['do']
  readonly fingerprint: string
  readonly running: RunningTask<CsiTaskOutcome, CsiTaskProgress>
  readonly startedAt: number
  /** Number of calls that wait for its outcome. */
  callers: number
}

/** A failure that no call waited for. The next identical call reports it, once. */
interface UnreportedTaskFailure {
  readonly fingerprint: string
  readonly failure: CsiTaskFailure
  readonly expiresAt: number
}

/** Kubelet repeats a call within about two minutes, and the reason of a failure stays true for that time. */
const UNREPORTED_FAILURE_LIFETIME_MS = 5 * 60_000

/**
 * Runs one task at a time for each target. A repeated call joins the running task, and a task continues after its callers'
 * deadlines.
 */
export class VolumePublicationQueue {
  readonly #workers: Pick<WorkerPool<CsiTask, CsiTaskOutcome, CsiTaskProgress>, 'run'>
  readonly #now: () => number
  readonly #current = new Map<string, TargetPathTask>()
  readonly #unreported = new Map<string, UnreportedTaskFailure>()

  /** @param now clock of `until`, in milliseconds */
  constructor(workers: Pick<WorkerPool<CsiTask, CsiTaskOutcome, CsiTaskProgress>, 'run'>, now: () => number) {
    this.#workers = workers
    this.#now = now
  }

  /**
   * @param namespace the pod's namespace; '' unless the task publishes
   * @param until deadline of the answer
   */
  async answer(task: CsiTask, namespace: string, until: number): Promise<CsiTaskOutcome> {
    const { directory } = task
    const fingerprint = hashCsiTask(task)
    for (let current = this.#current.get(directory); current; current = this.#current.get(directory)) {
      if (current.fingerprint === fingerprint) return this.#waitForOutcome(current, until)
      if (task.do === 'publish' && current.kind === 'publish')
        return createAbortedOutcome(`another request came first: ${this.#formatState(current)}`)
      // The deletion of a pod waits neither for a walk nor for a stats call.
      if (task.do === 'unpublish' && current.kind !== 'unpublish') current.running.cancel()
      if (!(await this.#waitForEnd(current, until))) return createAbortedOutcome(this.#formatState(current))
    }
    const unreported = this.#unreported.get(directory)
    if (task.do !== 'stats') this.#unreported.delete(directory)
    if (task.do === 'publish' && unreported?.fingerprint === fingerprint && this.#now() < unreported.expiresAt) {
      return { failure: unreported.failure }
    }
    return this.#waitForOutcome(this.#begin(task, fingerprint, namespace), until)
  }

  #begin(task: CsiTask, fingerprint: string, namespace: string): TargetPathTask {
    const running = this.#workers.run(task, namespace)
    const current: TargetPathTask = { kind: task.do, fingerprint, running, startedAt: this.#now(), callers: 0 }
    this.#current.set(task.directory, current)
    void running.outcome.then((outcome) => {
      this.#current.delete(task.directory)
      // The failure of a crashed worker says nothing about the volume, so it is not kept.
      const { failure } = outcome
      if (current.callers > 0 || task.do !== 'publish' || failure === undefined || failure.code === 'ABORTED') return
      this.#removeExpired()
      const expiresAt = this.#now() + UNREPORTED_FAILURE_LIFETIME_MS
      this.#unreported.set(task.directory, { fingerprint, failure, expiresAt })
    })
    return current
  }

  async #waitForOutcome(current: TargetPathTask, until: number): Promise<CsiTaskOutcome> {
    current.callers++
    try {
      return (await this.#within(current.running.outcome, until)) ?? createAbortedOutcome(this.#formatState(current))
    } finally {
      current.callers--
    }
  }

  async #waitForEnd({ running }: TargetPathTask, until: number): Promise<boolean> {
    return (await this.#within(running.outcome, until)) !== undefined
  }

  #within<T>(promise: Promise<T>, until: number): Promise<T | undefined> {
    return resolveWithinTimeout(Math.max(0, until - this.#now()), promise)
  }

  #formatState({ kind, running: { progress, isWaiting }, startedAt }: TargetPathTask): string {
    const seconds = Math.round((this.#now() - startedAt) / 1000)
    const walk = progress === undefined ? '' : ` (${formatCsiTaskProgress(progress)})`
    return isWaiting
      ? `waiting for ${seconds} s, as much else is being mounted: kubelet asks again`
      : `${CSI_TASK_WORDS[kind].activity} takes ${seconds} s so far${walk} and goes on: kubelet asks again`
  }

  #removeExpired(): void {
    for (const [directory, { expiresAt }] of this.#unreported) {
      if (expiresAt <= this.#now()) this.#unreported.delete(directory)
    }
  }
}

function formatCsiTaskProgress({ visited, changed, isAnothers }: CsiTaskProgress): string {
  const counts = `inodes visited: ${visited}, changed: ${changed}`
  return isAnothers ? `waiting for the walk of another call, ${counts}` : counts
}

function createAbortedOutcome(message: string): CsiTaskOutcome {
  return { failure: { code: 'ABORTED', message: `${message}${formatFaultCode('in-progress')}` } }
}

/** Hashes a task, because it may contain secrets that must not be kept. */
function hashCsiTask(task: CsiTask): string {
  return createHash('sha256').update(JSON.stringify(task)).digest('hex')
}
