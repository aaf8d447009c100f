import { LeftProcesses } from '../host/left-processes.ts'
import { isBlocked, type Limits, nextOf } from './schedule.ts'
import { countIfLeft, refuseIfLeft, Silence, type Supervision } from './supervision.ts'
import type { Lost, Running, Said, StartWorker, Worker } from './worker.ts'

export type { Lost, Running, Said, StartWorker, Worker, WorkerEvents } from './worker.ts'

interface Task<Job, Outcome, Progress> {
  readonly do: string
  readonly namespace: string
  job: Job
  readonly settle: (outcome: Outcome) => void
  /** In ms; 0 while it waits. */
  since: number
  at: Place<Job, Outcome, Progress> | undefined
  progress: Progress | undefined
  silence: Silence | undefined
}

/** A worker and what it does. */
interface Place<Job, Outcome, Progress> {
  readonly worker: Worker<Job>
  task: Task<Job, Outcome, Progress> | undefined
  /** It was killed: what it still says counts no more. */
  isDying: boolean
  idle: NodeJS.Timeout | undefined
  readonly end: PromiseWithResolvers<void>
}

/** How long a worker stays that nobody needs, in ms: kubelet repeats its calls about once a minute. */
const IDLE_MS = 90_000
/** After so long a job is not expected to end soon, ms. */
const STUCK_MS = 2000
/** Before another one is started in the place of one that ended though it was to stay. */
const AGAIN_MS = 1000

/** Workers, started when they are needed, at most so many at a time as the limits say. */
export class Workers<Job extends { do: string }, Outcome, Progress = never> {
  readonly #start: StartWorker<Job, Outcome, Progress>
  readonly #limits: Limits
  readonly #lost: Lost<Outcome>
  readonly #waiting: Task<Job, Outcome, Progress>[] = []
  readonly #running = new Set<Task<Job, Outcome, Progress>>()
  /** The one that was busy last is taken first: others may go. */
  readonly #idle: Place<Job, Outcome, Progress>[] = []
  readonly #supervision: Supervision<Job, Outcome> | undefined
  readonly #left = new LeftProcesses()
  #isClosed = false

  /** @param supervision undefined: workers may report nothing for as long as they like */
  constructor(
    start: StartWorker<Job, Outcome, Progress>,
    limits: Limits,
    lost: Lost<Outcome>,
    supervision?: Supervision<Job, Outcome>,
  ) {
    this.#start = start
    this.#supervision = supervision
    this.#limits = limits
    this.#lost = lost
    this.#warmUp()
  }

  /** @param namespace the pod's, of a publication; '' for all others */
  run(job: Job, namespace: string): Running<Outcome, Progress> {
    const { promise, resolve } = Promise.withResolvers<Outcome>()
    const task: Task<Job, Outcome, Progress> = {
      do: job.do,
      namespace,
      job,
      settle: resolve,
      since: 0,
      at: undefined,
      progress: undefined,
      silence: undefined,
    }
    const refusal = refuseIfLeft(this.#supervision, this.#left, job, namespace)
    if (refusal === undefined) this.#waiting.push(task)
    else resolve(refusal)
    this.#dispatch()
    const isTaskBlocked = () => isBlocked(task, this.#stuck(), this.#limits)
    return {
      outcome: promise,
      get isWaiting() {
        return task.at === undefined
      },
      get isBlocked() {
        return task.at === undefined && isTaskBlocked()
      },
      get progress() {
        return task.progress
      },
      cancel: () => this.#cancel(task),
    }
  }

  /** Workers that are at a job finish that, and nobody hears of it. */
  close(): void {
    this.#isClosed = true
    for (const place of [...this.#idle]) this.#dismiss(place)
    for (const { at } of this.#running) at?.worker.close()
  }

  #stuck(): Task<Job, Outcome, Progress>[] {
    const before = performance.now() - STUCK_MS
    return [...this.#running].filter(({ at, since }) => at?.isDying || since <= before)
  }

  #dispatch(): void {
    for (;;) {
      const next = nextOf(this.#waiting, [...this.#running], performance.now(), this.#limits)
      const [task] = next < 0 ? [] : this.#waiting.splice(next, 1)
      if (task === undefined) return
      this.#begin(task)
    }
  }

  #begin(task: Task<Job, Outcome, Progress>): void {
    task.since = performance.now()
    this.#running.add(task)
    // When it has become a long one another may begin.
    setTimeout(() => this.#dispatch(), this.#limits.longAfterMs + 1).unref()
    const place = this.#idle.pop() ?? this.#newPlace()
    clearTimeout(place.idle)
    place.task = task
    task.at = place
    const { patienceMs } = this.#supervision ?? {}
    if (patienceMs !== undefined) task.silence = new Silence(patienceMs, (ms) => void this.#giveUp(task, place, ms))
    place.worker.send(task.job)
  }

  /** Kills a worker that reports nothing. Another one makes the job again and answers for it, unless none may. */
  async #giveUp(task: Task<Job, Outcome, Progress>, place: Place<Job, Outcome, Progress>, silentMs: number) {
    const { pid = 0 } = place.worker
    const { retry } = this.#supervision ?? {}
    if (retry === undefined) return void this.#kill(task, place)
    const isLeft = await this.#abandon(task, place)
    const silent = { pid, seconds: Math.round(silentMs / 1000), isLeft }
    const job = retry(task.job, silent)
    if (job === undefined) {
      const outcome = this.#supervision?.answer?.(task.job, silent)
      return this.#settle(task, outcome ?? this.#lost.ended(`(process ${pid}) reported nothing and was ended`))
    }
    task.job = job
    this.#begin(task)
  }

  /** Kills a worker; its end means nothing to its job any more. @returns whether the kernel does not let it end */
  #abandon(task: Task<Job, Outcome, Progress>, place: Place<Job, Outcome, Progress>): Promise<boolean> {
    place.task = undefined
    task.at = undefined
    return this.#kill(task, place)
  }

  /** Unless the worker was abandoned, its job is at work until it has ended. */
  #kill(task: Task<Job, Outcome, Progress>, place: Place<Job, Outcome, Progress>): Promise<boolean> {
    task.silence?.end()
    place.isDying = true
    place.worker.kill()
    const owner = this.#supervision?.ownerOf?.(task.job) ?? task.namespace
    return countIfLeft(this.#left, place.worker.pid ?? 0, owner, place.end.promise)
  }

  #newPlace(): Place<Job, Outcome, Progress> {
    const place: Place<Job, Outcome, Progress> = {
      worker: this.#start({
        said: (said) => this.#hear(place, said),
        ended: (how) => this.#bury(place, how),
      }),
      task: undefined,
      isDying: false,
      idle: undefined,
      end: Promise.withResolvers(),
    }
    return place
  }

  #hear(place: Place<Job, Outcome, Progress>, said: Said<Outcome, Progress>): void {
    const { task } = place
    if (task === undefined || place.isDying) return
    task.silence?.hear('patienceMs' in said ? said.patienceMs : undefined)
    if ('progress' in said) task.progress = said.progress
    if (!('outcome' in said)) return
    place.task = undefined
    // What a long walk has left in its memory goes with it.
    if (performance.now() - task.since >= this.#limits.longAfterMs) place.worker.close()
    else this.#rest(place)
    this.#settle(task, said.outcome)
  }

  #bury(place: Place<Job, Outcome, Progress>, how: string): void {
    place.end.resolve()
    this.#removeIdle(place)
    const { task } = place
    place.task = undefined
    if (task !== undefined) this.#settle(task, this.#lost.ended(how))
    setTimeout(() => this.#warmUp(), AGAIN_MS).unref()
  }

  #warmUp(): void {
    while (!this.#isClosed && this.#idle.length + this.#running.size < this.#limits.warm) {
      this.#idle.push(this.#newPlace())
    }
  }

  #rest(place: Place<Job, Outcome, Progress>): void {
    place.idle = setTimeout(() => {
      if (this.#idle.length > this.#limits.warm) this.#dismiss(place)
    }, IDLE_MS).unref()
    this.#idle.push(place)
  }

  #dismiss(place: Place<Job, Outcome, Progress>): void {
    this.#removeIdle(place)
    place.worker.close()
  }

  #removeIdle(place: Place<Job, Outcome, Progress>): void {
    clearTimeout(place.idle)
    const at = this.#idle.indexOf(place)
    if (at >= 0) this.#idle.splice(at, 1)
  }

  #settle(task: Task<Job, Outcome, Progress>, outcome: Outcome): void {
    task.silence?.end()
    this.#running.delete(task)
    task.settle(outcome)
    this.#dispatch()
  }

  async #endSupervised(task: Task<Job, Outcome, Progress>, place: Place<Job, Outcome, Progress>): Promise<void> {
    const isLeft = await this.#abandon(task, place)
    this.#settle(
      task,
      this.#lost.ended(isLeft ? 'was ended, and the kernel still makes it wait' : 'was ended by SIGKILL'),
    )
  }

  #cancel(task: Task<Job, Outcome, Progress>): void {
    const waiting = this.#waiting.indexOf(task)
    if (waiting >= 0) {
      this.#waiting.splice(waiting, 1)
      task.settle(this.#lost.notBegun)
    } else if (this.#running.has(task) && task.at !== undefined) {
      const isAnswered = this.#supervision?.retry !== undefined
      void (isAnswered ? this.#endSupervised(task, task.at) : this.#kill(task, task.at))
    }
  }
}
