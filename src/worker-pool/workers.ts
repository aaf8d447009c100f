import { type Limits, nextOf } from './schedule.ts'

/** What a worker says of its job: how far it is, and at last what came of it. */
export type Said<Outcome, Progress> = { progress: Progress } | { outcome: Outcome }

/** A process that does one job at a time. */
export interface Worker<Job> {
  send(job: Job): void
  /** SIGKILL: the engine is made for calls that die. One that waits in the kernel ends when that lets it. */
  kill(): void
  /** It ends after its job. */
  close(): void
}

/** What is heard of a worker. */
export interface WorkerEvents<Outcome, Progress> {
  said(said: Said<Outcome, Progress>): void
  /** Once, last of all. @param how it ended, in words */
  ended(how: string): void
}

export type StartWorker<Job, Outcome, Progress = never> = (events: WorkerEvents<Outcome, Progress>) => Worker<Job>

/** What is answered of a job that nobody has answered. */
export interface Lost<Outcome> {
  /** It never began. */
  readonly notBegun: Outcome
  /** @param how its worker ended, in words: how far the job came is not known */
  ended(how: string): Outcome
}

/** A job that waits or is worked on. */
export interface Running<Outcome, Progress = never> {
  readonly outcome: Promise<Outcome>
  /** No worker is at it yet. */
  readonly isWaiting: boolean
  /** How far it is; undefined where that was not told yet. */
  readonly progress: Progress | undefined
  /** Gives it up: what waits never starts, and the worker that is at it is killed. `outcome` comes when it has ended. */
  cancel(): void
}

interface Task<Job, Outcome, Progress> {
  readonly do: string
  readonly namespace: string
  readonly job: Job
  readonly settle: (outcome: Outcome) => void
  /** In ms; 0 while it waits. */
  since: number
  at: Place<Job, Outcome, Progress> | undefined
  progress: Progress | undefined
}

/** A worker and what it does. */
interface Place<Job, Outcome, Progress> {
  readonly worker: Worker<Job>
  task: Task<Job, Outcome, Progress> | undefined
  /** It was killed: what it still says counts no more. */
  isDying: boolean
  idle: NodeJS.Timeout | undefined
}

/** How long a worker stays that nobody needs, in ms: kubelet repeats its calls about once a minute. */
const IDLE_MS = 90_000
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
  #isClosed = false

  constructor(start: StartWorker<Job, Outcome, Progress>, limits: Limits, lost: Lost<Outcome>) {
    this.#start = start
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
    }
    this.#waiting.push(task)
    this.#dispatch()
    return {
      outcome: promise,
      get isWaiting() {
        return task.at === undefined
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
    place.worker.send(task.job)
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
    }
    return place
  }

  #hear(place: Place<Job, Outcome, Progress>, said: Said<Outcome, Progress>): void {
    const { task } = place
    if (task === undefined || place.isDying) return
    if ('progress' in said) {
      task.progress = said.progress
      return
    }
    place.task = undefined
    // What a long walk has left in its memory goes with it.
    if (performance.now() - task.since >= this.#limits.longAfterMs) place.worker.close()
    else this.#rest(place)
    this.#settle(task, said.outcome)
  }

  #bury(place: Place<Job, Outcome, Progress>, how: string): void {
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
    this.#running.delete(task)
    task.settle(outcome)
    this.#dispatch()
  }

  #cancel(task: Task<Job, Outcome, Progress>): void {
    const waiting = this.#waiting.indexOf(task)
    if (waiting >= 0) {
      this.#waiting.splice(waiting, 1)
      task.settle(this.#lost.notBegun)
    } else if (this.#running.has(task) && task.at !== undefined) {
      task.at.isDying = true
      task.at.worker.kill()
    }
  }
}
