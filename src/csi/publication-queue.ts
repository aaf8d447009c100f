import { createHash } from 'node:crypto'
import { within } from '../host/linux/child.ts'
import type { RunningTask, Workers } from '../worker-pool/workers.ts'
import type { CsiTask, CsiTaskOutcome, CsiTaskProgress, TaskFailure } from './worker-tasks.ts'

/** What is under way at a target. */
interface RunningCall {
  readonly job: CsiTask['do']
  readonly fingerprint: string
  readonly running: RunningTask<CsiTaskOutcome, CsiTaskProgress>
  readonly since: number
  /** Calls that wait for its outcome. */
  waiting: number
}

/** What failed while nobody waited for it: the next call for the same hears of it, once. */
interface UnreportedFailure {
  readonly fingerprint: string
  readonly failure: TaskFailure
  readonly until: number
}

const TASK_NAMES = { publish: 'mounting', unpublish: 'unmounting', stats: 'a look' }

/** In ms. Kubelet asks again within two minutes or so, and a reason is true for as long. */
const FAILURE_KEPT_MS = 5 * 60_000

/**
 * One job at a time for a target. A call that is repeated joins the job that is under way, and a job goes on though
 * nobody waits for it any more.
 */
export class PublicationQueue {
  readonly #workers: Pick<Workers<CsiTask, CsiTaskOutcome, CsiTaskProgress>, 'run'>
  readonly #now: () => number
  readonly #current = new Map<string, RunningCall>()
  readonly #unreported = new Map<string, UnreportedFailure>()

  /** @param now ms, for `until` too */
  constructor(workers: Pick<Workers<CsiTask, CsiTaskOutcome, CsiTaskProgress>, 'run'>, now: () => number) {
    this.#workers = workers
    this.#now = now
  }

  /**
   * @param namespace the pod's, of a publication
   * @param until when the caller must have an answer
   */
  async answer(job: CsiTask, namespace: string, until: number): Promise<CsiTaskOutcome> {
    const { directory } = job
    const fingerprint = hashTask(job)
    for (let at = this.#current.get(directory); at !== undefined; at = this.#current.get(directory)) {
      if (at.fingerprint === fingerprint) return this.#waitForOutcome(at, until)
      if (job.do === 'publish' && at.job === 'publish')
        return createAborted(`another request came first: ${this.#formatState(at)}`)
      // A pod that goes waits for no walk, and for nobody's look.
      if (job.do === 'unpublish' && at.job !== 'unpublish') at.running.cancel()
      if (!(await this.#waitForEnd(at, until))) return createAborted(this.#formatState(at))
    }
    const unheard = this.#unreported.get(directory)
    if (job.do !== 'stats') this.#unreported.delete(directory)
    if (job.do === 'publish' && unheard?.fingerprint === fingerprint && this.#now() < unheard.until) {
      return { failure: unheard.failure }
    }
    return this.#waitForOutcome(this.#begin(job, fingerprint, namespace), until)
  }

  #begin(job: CsiTask, fingerprint: string, namespace: string): RunningCall {
    const running = this.#workers.run(job, namespace)
    const current: RunningCall = { job: job.do, fingerprint, running, since: this.#now(), waiting: 0 }
    this.#current.set(job.directory, current)
    void running.outcome.then((outcome) => {
      this.#current.delete(job.directory)
      // A worker that died has told nothing that a next one would not.
      const { failure } = outcome
      if (current.waiting > 0 || job.do !== 'publish' || failure === undefined || failure.code === 'ABORTED') return
      this.#forgetOld()
      const until = this.#now() + FAILURE_KEPT_MS
      this.#unreported.set(job.directory, { fingerprint, failure, until })
    })
    return current
  }

  async #waitForOutcome(current: RunningCall, until: number): Promise<CsiTaskOutcome> {
    current.waiting++
    try {
      return (await this.#within(current.running.outcome, until)) ?? createAborted(this.#formatState(current))
    } finally {
      current.waiting--
    }
  }

  async #waitForEnd({ running }: RunningCall, until: number): Promise<boolean> {
    return (await this.#within(running.outcome, until)) !== undefined
  }

  #within<T>(promise: Promise<T>, until: number): Promise<T | undefined> {
    return within(Math.max(0, until - this.#now()), promise)
  }

  #formatState({ job, running: { progress, isWaiting }, since }: RunningCall): string {
    const seconds = Math.round((this.#now() - since) / 1000)
    const walk = progress === undefined ? '' : ` (${formatWalk(progress)})`
    return isWaiting
      ? `waiting for ${seconds} s, as much else is being mounted: kubelet asks again`
      : `${TASK_NAMES[job]} takes ${seconds} s so far${walk} and goes on: kubelet asks again`
  }

  #forgetOld(): void {
    for (const [directory, { until }] of this.#unreported) if (until <= this.#now()) this.#unreported.delete(directory)
  }
}

function formatWalk({ visited, changed, isAnothers }: CsiTaskProgress): string {
  const counts = `inodes visited: ${visited}, changed: ${changed}`
  return isAnothers ? `waiting for the walk of another call, ${counts}` : counts
}

function createAborted(message: string): CsiTaskOutcome {
  return { failure: { code: 'ABORTED', message } }
}

/** A job may hold secrets: nothing of it is kept. */
function hashTask(job: CsiTask): string {
  return createHash('sha256').update(JSON.stringify(job)).digest('hex')
}
