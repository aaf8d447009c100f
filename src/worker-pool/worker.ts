/** What a worker reports of its job: for how long it may report nothing (see Silence.hear), how far it is, its outcome. */
export type Said<Outcome, Progress> = { patienceMs?: number | null } | { progress: Progress } | { outcome: Outcome }

/** A process that does one job at a time. */
export interface Worker<Job> {
  readonly pid?: number | undefined
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
  /** It waits for workers that are stuck: they were killed and have not ended, or take very long. */
  readonly isBlocked: boolean
  /** How far it is; undefined where that was not told yet. */
  readonly progress: Progress | undefined
  /** Gives it up: what waits never starts, and the worker that is at it is killed. `outcome` comes when it has ended. */
  cancel(): void
}
