import { ResponseTimer } from '../kernel/waiting.ts'
import { countProcessors, type StartWorker, UnkillableProcesses, type WorkerReport } from '../kernel/worker-process.ts'
import {
  computeWorkerStartDelayMs,
  createWorkerTask,
  findNextRunnableTask,
  isTaskBlocked,
  type LostTaskOutcomes,
  type RunningTask,
  type WorkerLimits,
  type WorkerSlot,
  type WorkerTask,
} from './schedule.ts'
import { countWorkerIfUnkillable, refuseIfTooManyUnkillableWorkers, type WorkerSupervision } from './supervision.ts'

/** An idle worker is closed after this time. Kubelet repeats its calls about once a minute. */
const MAX_WORKER_IDLE_MS = 90_000
/** A task that has run for so long is not expected to end soon. */
const STUCK_TASK_AFTER_MS = 2000
/** Delay before a worker that ended is replaced, if `minIdle` workers are kept. */
const WORKER_RESTART_DELAY_MS = 1000

/** Starts worker processes when tasks need them, within the limits. */
export class WorkerPool<Job extends { do: string }, Outcome, Progress = never> {
  readonly #startWorker: StartWorker<Job, Outcome, Progress>
  readonly #limits: WorkerLimits
  readonly #lost: LostTaskOutcomes<Outcome>
  readonly #waiting: WorkerTask<Job, Outcome, Progress>[] = []
  readonly #running = new Set<WorkerTask<Job, Outcome, Progress>>()
  /** The most recently used worker is taken first, so that others reach their idle limit. */
  readonly #idle: WorkerSlot<Job, Outcome, Progress>[] = []
  readonly #supervision: WorkerSupervision<Job, Outcome> | undefined
  readonly #left = new UnkillableProcesses()
  #isClosed = false
  #lastWorkerStartAt = Number.NEGATIVE_INFINITY
  #growthTimer: NodeJS.Timeout | undefined

  /** @param supervision undefined: workers may be unresponsive indefinitely */
  constructor(
    startWorker: StartWorker<Job, Outcome, Progress>,
    limits: WorkerLimits,
    lost: LostTaskOutcomes<Outcome>,
    supervision?: WorkerSupervision<Job, Outcome>,
  ) {
    this.#startWorker = startWorker
    this.#supervision = supervision
    this.#limits = limits
    this.#lost = lost
    this.#startIdleWorkers()
    for (let started = 0; started < (limits.startedAhead ?? 0); started++) this.#keepIdle(this.#createSlot())
  }

  /** @param namespace the pod's namespace, for tasks that count per namespace; '' for all others */
  run(job: Job, namespace: string): RunningTask<Outcome, Progress> {
    const { promise, resolve } = Promise.withResolvers<Outcome>()
    const task = createWorkerTask<Job, Outcome, Progress>(job, namespace, resolve)
    const refusal = refuseIfTooManyUnkillableWorkers(this.#supervision, this.#left, job, namespace)
    if (refusal === undefined) this.#waiting.push(task)
    else resolve(refusal)
    this.#dispatch()
    const isBlockedByStuckTasks = () => isTaskBlocked(task, this.#listStuck(), this.#limits)
    return {
      outcome: promise,
      get isWaiting() {
        return task.slot === undefined
      },
      get isBlocked() {
        return task.slot === undefined && isBlockedByStuckTasks()
      },
      get progress() {
        return task.progress
      },
      cancel: () => this.#cancel(task),
    }
  }

  /** Closes all workers. A running task ends without an outcome. */
  close(): void {
    this.#isClosed = true
    for (const slot of [...this.#idle]) this.#dismiss(slot)
    for (const { slot } of this.#running) slot?.worker.close()
  }

  #listStuck(): WorkerTask<Job, Outcome, Progress>[] {
    const before = performance.now() - STUCK_TASK_AFTER_MS
    return [...this.#running].filter(({ slot, startedAt }) => slot?.isDying || startedAt <= before)
  }

  #dispatch(): void {
    for (;;) {
      const now = performance.now()
      const next = findNextRunnableTask(this.#waiting, [...this.#running], now, this.#limits)
      const task = this.#waiting[next]
      if (task === undefined) return
      const busy = this.#idle.length > 0 ? [] : [...this.#running]
      const since = Math.max(task.queuedAt, this.#lastWorkerStartAt)
      const delayMs = computeWorkerStartDelayMs(since, busy, now, this.#limits, countProcessors())
      clearTimeout(this.#growthTimer)
      if (delayMs > 0) {
        this.#growthTimer = setTimeout(() => this.#dispatch(), delayMs).unref()
        return
      }
      this.#waiting.splice(next, 1)
      this.#start(task)
    }
  }

  #start(task: WorkerTask<Job, Outcome, Progress>): void {
    task.startedAt = performance.now()
    this.#running.add(task)
    // A task that no longer counts as quick lets another one start.
    setTimeout(() => this.#dispatch(), this.#limits.longAfterMs + 1).unref()
    const slot = this.#idle.pop() ?? this.#createSlot()
    clearTimeout(slot.idleTimer)
    slot.task = task
    task.slot = slot
    const { patienceMs } = this.#supervision ?? {}
    if (patienceMs !== undefined)
      task.responseTimer = new ResponseTimer(patienceMs, (ms) => void this.#endUnresponsive(task, slot, ms))
    slot.worker.send(task.job)
  }

  /** Kills an unresponsive worker. Another worker retries its task, if the supervision allows it. */
  async #endUnresponsive(
    task: WorkerTask<Job, Outcome, Progress>,
    slot: WorkerSlot<Job, Outcome, Progress>,
    elapsedMs: number,
  ) {
    const { pid = 0 } = slot.worker
    const { retry } = this.#supervision ?? {}
    if (retry === undefined) return void this.#kill(task, slot)
    const isLeft = await this.#abandon(task, slot)
    const unresponsive = { pid, seconds: Math.round(elapsedMs / 1000), isLeft }
    const job = retry(task.job, unresponsive)
    if (job !== undefined) return this.#start(Object.assign(task, { job }))
    const outcome = this.#supervision?.createOutcome?.(task.job, unresponsive)
    this.#settle(task, outcome ?? this.#lost.createExited(`(process ${pid}) reported nothing and was ended`))
  }

  /** Detaches a task from its worker and kills the worker. @returns whether the kernel keeps the process alive */
  #abandon(task: WorkerTask<Job, Outcome, Progress>, slot: WorkerSlot<Job, Outcome, Progress>): Promise<boolean> {
    slot.task = undefined
    task.slot = undefined
    return this.#kill(task, slot)
  }

  /** Kills a worker. Its task stays running until the process has ended, unless the task was detached. */
  #kill(task: WorkerTask<Job, Outcome, Progress>, slot: WorkerSlot<Job, Outcome, Progress>): Promise<boolean> {
    task.responseTimer?.stop()
    slot.isDying = true
    slot.worker.kill()
    const owner = this.#supervision?.findOwner?.(task.job) ?? task.namespace
    return countWorkerIfUnkillable(this.#left, slot.worker.pid ?? 0, owner, slot.end.promise)
  }

  #createSlot(): WorkerSlot<Job, Outcome, Progress> {
    this.#lastWorkerStartAt = performance.now()
    const slot: WorkerSlot<Job, Outcome, Progress> = {
      worker: this.#startWorker({
        onReport: (report) => this.#handleReport(slot, report),
        onExit: (how) => this.#handleExit(slot, how),
      }),
      task: undefined,
      isDying: false,
      idleTimer: undefined,
      end: Promise.withResolvers(),
    }
    return slot
  }

  #handleReport(slot: WorkerSlot<Job, Outcome, Progress>, report: WorkerReport<Outcome, Progress>): void {
    const { task } = slot
    if (task === undefined || slot.isDying) return
    task.responseTimer?.reset('patienceMs' in report ? report.patienceMs : undefined)
    if ('progress' in report) task.progress = report.progress
    if (!('outcome' in report)) return
    slot.task = undefined
    // A worker is closed after a long walk, to free its memory.
    if (performance.now() - task.startedAt >= this.#limits.longAfterMs) slot.worker.close()
    else this.#keepIdle(slot)
    this.#settle(task, report.outcome)
  }

  #handleExit(slot: WorkerSlot<Job, Outcome, Progress>, how: string): void {
    slot.end.resolve()
    this.#removeIdle(slot)
    const { task } = slot
    slot.task = undefined
    if (task !== undefined) this.#settle(task, this.#lost.createExited(how))
    setTimeout(() => this.#startIdleWorkers(), WORKER_RESTART_DELAY_MS).unref()
  }

  #startIdleWorkers(): void {
    while (!this.#isClosed && this.#idle.length + this.#running.size < this.#limits.minIdle) {
      this.#idle.push(this.#createSlot())
    }
  }

  #keepIdle(slot: WorkerSlot<Job, Outcome, Progress>): void {
    slot.idleTimer = setTimeout(() => {
      if (this.#idle.length > this.#limits.minIdle) this.#dismiss(slot)
    }, MAX_WORKER_IDLE_MS).unref()
    this.#idle.push(slot)
  }

  #dismiss(slot: WorkerSlot<Job, Outcome, Progress>): void {
    this.#removeIdle(slot)
    slot.worker.close()
  }

  #removeIdle(slot: WorkerSlot<Job, Outcome, Progress>): void {
    clearTimeout(slot.idleTimer)
    const index = this.#idle.indexOf(slot)
    if (index >= 0) this.#idle.splice(index, 1)
  }

  #settle(task: WorkerTask<Job, Outcome, Progress>, outcome: Outcome): void {
    task.responseTimer?.stop()
    this.#running.delete(task)
    task.settle(outcome)
    this.#dispatch()
  }

  /** Kills the worker of a cancelled task, and settles the task without waiting for the process to end. */
  async #endSupervised(
    task: WorkerTask<Job, Outcome, Progress>,
    slot: WorkerSlot<Job, Outcome, Progress>,
  ): Promise<void> {
    const isLeft = await this.#abandon(task, slot)
    this.#settle(
      task,
      this.#lost.createExited(isLeft ? 'was ended, and the kernel still makes it wait' : 'was ended by SIGKILL'),
    )
  }

  #cancel(task: WorkerTask<Job, Outcome, Progress>): void {
    const index = this.#waiting.indexOf(task)
    if (index >= 0) {
      this.#waiting.splice(index, 1)
      task.settle(this.#lost.notStarted)
    } else if (this.#running.has(task) && task.slot !== undefined) {
      const settlesEarly = this.#supervision?.retry !== undefined
      void (settlesEarly ? this.#endSupervised(task, task.slot) : this.#kill(task, task.slot))
    }
  }
}
