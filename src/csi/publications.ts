import { createHash } from 'node:crypto'
import { within } from '../host/linux/child.ts'
import type { Running, Workers } from '../worker-pool/workers.ts'
import type { Failure, Job, Outcome, Progress } from './jobs.ts'

/** What is under way at a target. */
interface Current {
  readonly job: Job['do']
  readonly fingerprint: string
  readonly running: Running<Outcome, Progress>
  readonly since: number
  /** Calls that wait for its outcome. */
  waiting: number
}

/** What failed while nobody waited for it: the next call for the same hears of it, once. */
interface Unheard {
  readonly fingerprint: string
  readonly failure: Failure
  readonly until: number
}

const DOING = { publish: 'mounting', unpublish: 'unmounting', stats: 'a look' }

/** In ms. Kubelet asks again within two minutes or so, and a reason is true for as long. */
const KEPT_MS = 5 * 60_000

/**
 * One job at a time for a target. A call that is repeated joins the job that is under way, and a job goes on though
 * nobody waits for it any more.
 */
export class Publications {
  readonly #workers: Pick<Workers<Job, Outcome, Progress>, 'run'>
  readonly #now: () => number
  readonly #current = new Map<string, Current>()
  readonly #unheard = new Map<string, Unheard>()

  /** @param now ms, for `until` too */
  constructor(workers: Pick<Workers<Job, Outcome, Progress>, 'run'>, now: () => number) {
    this.#workers = workers
    this.#now = now
  }

  /**
   * @param namespace the pod's, of a publication
   * @param until when the caller must have an answer
   */
  async answer(job: Job, namespace: string, until: number): Promise<Outcome> {
    const { directory } = job
    const fingerprint = fingerprintOf(job)
    for (let at = this.#current.get(directory); at !== undefined; at = this.#current.get(directory)) {
      if (at.fingerprint === fingerprint) return this.#outcomeOf(at, until)
      if (job.do === 'publish' && at.job === 'publish') return aborted(`another request came first: ${this.#told(at)}`)
      // A pod that goes waits for no walk, and for nobody's look.
      if (job.do === 'unpublish' && at.job !== 'unpublish') at.running.cancel()
      if (!(await this.#isOver(at, until))) return aborted(this.#told(at))
    }
    const unheard = this.#unheard.get(directory)
    if (job.do !== 'stats') this.#unheard.delete(directory)
    if (job.do === 'publish' && unheard?.fingerprint === fingerprint && this.#now() < unheard.until) {
      return { failure: unheard.failure }
    }
    return this.#outcomeOf(this.#begin(job, fingerprint, namespace), until)
  }

  #begin(job: Job, fingerprint: string, namespace: string): Current {
    const running = this.#workers.run(job, namespace)
    const current: Current = { job: job.do, fingerprint, running, since: this.#now(), waiting: 0 }
    this.#current.set(job.directory, current)
    void running.outcome.then((outcome) => {
      this.#current.delete(job.directory)
      // A worker that died has told nothing that a next one would not.
      const { failure } = outcome
      if (current.waiting > 0 || job.do !== 'publish' || failure === undefined || failure.code === 'ABORTED') return
      this.#forgetOld()
      const until = this.#now() + KEPT_MS
      this.#unheard.set(job.directory, { fingerprint, failure, until })
    })
    return current
  }

  async #outcomeOf(current: Current, until: number): Promise<Outcome> {
    current.waiting++
    try {
      return (await this.#within(current.running.outcome, until)) ?? aborted(this.#told(current))
    } finally {
      current.waiting--
    }
  }

  async #isOver({ running }: Current, until: number): Promise<boolean> {
    return (await this.#within(running.outcome, until)) !== undefined
  }

  #within<T>(promise: Promise<T>, until: number): Promise<T | undefined> {
    return within(Math.max(0, until - this.#now()), promise)
  }

  #told({ job, running: { progress, isWaiting }, since }: Current): string {
    const seconds = Math.round((this.#now() - since) / 1000)
    const walk = progress === undefined ? '' : ` (${walked(progress)})`
    return isWaiting
      ? `waiting for ${seconds} s, as much else is being mounted: kubelet asks again`
      : `${DOING[job]} takes ${seconds} s so far${walk} and goes on: kubelet asks again`
  }

  #forgetOld(): void {
    for (const [directory, { until }] of this.#unheard) if (until <= this.#now()) this.#unheard.delete(directory)
  }
}

function walked({ visited, changed, isAnothers }: Progress): string {
  const counts = `inodes visited: ${visited}, changed: ${changed}`
  return isAnothers ? `waiting for the walk of another call, ${counts}` : counts
}

function aborted(message: string): Outcome {
  return { failure: { code: 'ABORTED', message } }
}

/** A job may hold secrets: nothing of it is kept. */
function fingerprintOf(job: Job): string {
  return createHash('sha256').update(JSON.stringify(job)).digest('hex')
}
