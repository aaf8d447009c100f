import type { WalkCounts } from '../ownership/walk/report.ts'
import type { Job, Outcome, Said } from './jobs.ts'
import { type Limits, nextOf } from './schedule.ts'

/** A process that does one job at a time. */
export interface Worker {
  send(job: Job): void
  /** SIGKILL: the engine is made for calls that die. One that waits in the kernel ends when that lets it. */
  kill(): void
  /** It ends after its job. */
  close(): void
}

/** What is heard of a worker. */
export interface WorkerEvents {
  said(said: Said): void
  /** Once, last of all. @param how it ended, in words */
  ended(how: string): void
}

export type StartWorker = (events: WorkerEvents) => Worker

/** A job that waits or is worked on. */
export interface Running {
  readonly outcome: Promise<Outcome>
  /** No worker is at it yet. */
  readonly isWaiting: boolean
  /** How far its walk is; undefined where none has told yet. */
  readonly progress: WalkCounts | undefined
  /** Gives it up: what waits never starts, and the worker that is at it is killed. `outcome` comes when it has ended. */
  cancel(): void
}

interface Task {
  readonly do: Job['do']
  readonly namespace: string
  readonly job: Job
  readonly settle: (outcome: Outcome) => void
  /** In ms; 0 while it waits. */
  since: number
  at: Place | undefined
  progress: WalkCounts | undefined
}

/** A worker and what it does. */
interface Place {
  readonly worker: Worker
  task: Task | undefined
  /** It was killed: what it still says counts no more. */
  isDying: boolean
  idle: NodeJS.Timeout | undefined
}

/** How long a worker stays that nobody needs, in ms: kubelet repeats its calls about once a minute. */
const IDLE_MS = 90_000

/** Workers, started when they are needed, at most so many at a time as the limits say. */
export class Workers {
  readonly #start: StartWorker
  readonly #limits: Limits
  readonly #waiting: Task[] = []
  readonly #running = new Set<Task>()
  /** The one that was busy last is taken first: others may go. */
  readonly #idle: Place[] = []

  constructor(start: StartWorker, limits: Limits) {
    this.#start = start
    this.#limits = limits
  }

  /** @param namespace the pod's, of a publication; '' for all others */
  run(job: Job, namespace: string): Running {
    const { promise, resolve } = Promise.withResolvers<Outcome>()
    const task: Task = {
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

  #begin(task: Task): void {
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

  #newPlace(): Place {
    const place: Place = {
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

  #hear(place: Place, said: Said): void {
    const { task } = place
    if (task === undefined || place.isDying) return
    if ('progress' in said) {
      task.progress = said.progress
      return
    }
    place.task = undefined
    // What a long walk has left in its memory goes with it.
    if (performance.now() - task.since >= this.#limits.longAfterMs) place.worker.close()
    else {
      place.idle = setTimeout(() => this.#dismiss(place), IDLE_MS).unref()
      this.#idle.push(place)
    }
    this.#settle(task, said.outcome)
  }

  /** What was done is not known: kubelet takes ABORTED for "perhaps", and asks again. */
  #bury(place: Place, how: string): void {
    this.#removeIdle(place)
    const { task } = place
    place.task = undefined
    const message = `the process that was at work on it ${how}: the next call finishes what it began`
    if (task !== undefined) this.#settle(task, { failure: { code: 'ABORTED', message } })
  }

  #dismiss(place: Place): void {
    this.#removeIdle(place)
    place.worker.close()
  }

  #removeIdle(place: Place): void {
    clearTimeout(place.idle)
    const at = this.#idle.indexOf(place)
    if (at >= 0) this.#idle.splice(at, 1)
  }

  #settle(task: Task, outcome: Outcome): void {
    this.#running.delete(task)
    task.settle(outcome)
    this.#dispatch()
  }

  #cancel(task: Task): void {
    const waiting = this.#waiting.indexOf(task)
    if (waiting >= 0) {
      this.#waiting.splice(waiting, 1)
      task.settle({ failure: { code: 'ABORTED', message: 'it was given up before it began' } })
    } else if (this.#running.has(task) && task.at !== undefined) {
      task.at.isDying = true
      task.at.worker.kill()
    }
  }
}
