import type { ResponseTimer } from './supervision.ts'

/** A report of a worker: sign of life with a new limit (see ResponseTimer.reset), progress, or the outcome of its task. */
export type WorkerReport<Outcome, Progress> =
  | { patienceMs?: number | null }
  | { progress: Progress }
  | { outcome: Outcome }

/** A process that runs one task at a time. */
export interface Worker<Job> {
  readonly pid?: number | undefined
  send(job: Job): void
  /** Sends SIGKILL, which every task of modekeep tolerates. A process that waits in the kernel ends when the kernel returns. */
  kill(): void
  /** Lets the process end after its task. */
  close(): void
}

export interface WorkerEvents<Outcome, Progress> {
  onReport(report: WorkerReport<Outcome, Progress>): void
  /** Is called once, after all reports. @param how phrase for messages, such as "ended with exit status 1" */
  onExit(how: string): void
}

export type StartWorker<Job, Outcome, Progress = never> = (events: WorkerEvents<Outcome, Progress>) => Worker<Job>

/** Outcomes of tasks that no worker has completed. */
export interface LostTaskOutcomes<Outcome> {
  readonly notStarted: Outcome
  /** The worker ended during the task, whose progress is unknown. @param how phrase for messages */
  createExited(how: string): Outcome
}

/** A waiting or running task. */
export interface RunningTask<Outcome, Progress = never> {
  readonly outcome: Promise<Outcome>
  /** No worker runs it yet. */
  readonly isWaiting: boolean
  /** True if it waits for stuck workers, which were killed and have not ended, or take very long. */
  readonly isBlocked: boolean
  /** Progress that the worker reported last. */
  readonly progress: Progress | undefined
  /** Cancels the task. A waiting task never starts; a running task's worker is killed, and `outcome` settles when it has ended. */
  cancel(): void
}

export interface WorkerTask<Job, Outcome, Progress> {
  readonly do: string
  readonly namespace: string
  job: Job
  readonly settle: (outcome: Outcome) => void
  /** performance.now(); 0 while the task waits. */
  startedAt: number
  slot: WorkerSlot<Job, Outcome, Progress> | undefined
  progress: Progress | undefined
  responseTimer: ResponseTimer | undefined
}

/** A worker process and its task. */
export interface WorkerSlot<Job, Outcome, Progress> {
  readonly worker: Worker<Job>
  task: WorkerTask<Job, Outcome, Progress> | undefined
  /** The worker was killed. Its further reports are ignored. */
  isDying: boolean
  idleTimer: NodeJS.Timeout | undefined
  readonly end: PromiseWithResolvers<void>
}
