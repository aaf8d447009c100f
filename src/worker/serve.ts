import type { NodeConfig } from '../config/defaults.ts'
import type { PodSecrets } from '../config/json-options.ts'
import { formatError, Refusal, UnknownFormatRefusal } from '../errors/refusal.ts'
import type { Handle, Host } from '../kernel/host.ts'
import { readStreamLines, type WorkerReport } from '../kernel/worker-process.ts'
import type { GivenUpProcess, Session } from '../state/session.ts'
import { computeSilenceLimitMs } from './given-up.ts'
import {
  type IsolatedWorkOutcome,
  type IsolatedWorkProgress,
  type IsolatedWorkRequest,
  UnresponsiveRefusal,
} from './isolated.ts'

// A worker process reads tasks, runs them, and reports to the process that supervises it.

/** Writes text to the supervising process. A closed pipe is ignored: the task continues after its server has ended. */
type WriteReportText = (text: string) => void

/** The connection of a worker to the process that supervises it. */
export interface WorkerOutput {
  write: WriteReportText
  /** Ends this process after an error. */
  end(): void
}

const WORKER_REPORT_INTERVAL_MS = 500

/** Reports of a worker to its server during a task: see Session. */
export type TaskReporting = Required<Pick<Session, 'isAlive' | 'limitSilence'>>

/**
 * Reports to the loader's process, which kills this one after too long without a report: see driver/loader/supervise.c.
 * The caller has named this process as supervised before.
 * @param value the value of the variable that the loader sets
 */
export function reportToLoader(
  value: string,
  config: NodeConfig,
  write: WriteReportText,
): TaskReporting & Pick<Session, 'givenUp'> {
  const [pid, silentMs, end] = value.split(' ')
  const limitSilence = (milliseconds = computeSilenceLimitMs(config)) => write(`${milliseconds}\n`)
  const isAlive = startPeriodicReports(() => write('\n'))
  limitSilence()
  const givenUp: GivenUpProcess | undefined =
    end === undefined
      ? undefined
      : { pid: Number(pid), seconds: Math.round(Number(silentMs) / 1000), isLeft: end === 'left' }
  return { isAlive, limitSilence, givenUp }
}

/**
 * Calls `report` at a fixed interval, until the result is disposed of.
 * @returns the same call, rate-limited, for synchronous work during which no timer fires
 */
export function startPeriodicReports(report: () => void): (() => void) & Disposable {
  let last = performance.now()
  const isAlive = () => {
    if (performance.now() - last < WORKER_REPORT_INTERVAL_MS) return
    last = performance.now()
    report()
  }
  const timer = setInterval(isAlive, WORKER_REPORT_INTERVAL_MS).unref()
  return Object.assign(isAlive, { [Symbol.dispose]: () => clearInterval(timer) })
}

/** Returns a function that sends a report to the process that has started this one. */
function createReportSender<Outcome, Progress>(
  write: WriteReportText,
): (report: WorkerReport<Outcome, Progress>) => void {
  return (report) => write(`${JSON.stringify(report)}\n`)
}

/**
 * Runs the tasks that a server writes to stdin, one after the other, until stdin ends.
 * @param work must not throw
 * @param died creates the outcome of a task that ends this process with an uncaught exception
 */
export async function serveWorkerTasks<Job, Outcome, Progress = never>(
  { write, end }: WorkerOutput,
  work: (job: Job, progress: (progress: Progress) => void, report: TaskReporting) => Promise<Outcome>,
  died: (error: unknown) => Outcome,
): Promise<void> {
  const send = createReportSender<Outcome, Progress>(write)
  process.on('uncaughtException', (error) => {
    send({ outcome: died(error) })
    end()
  })
  const report: TaskReporting = {
    isAlive: () => send({}),
    limitSilence: (patienceMs) => send({ patienceMs: patienceMs ?? null }),
  }
  for await (const line of readStreamLines(process.stdin)) {
    send({ outcome: await work(JSON.parse(line), (progress) => send({ progress }), report) })
  }
}

/** @returns a value that is serializable as JSON */
export type IsolatedWorkFunction = (session: Session, handle: Handle, about: never) => Promise<unknown>

/** Small, so that the worker reports often even if a server is slow to answer each request. */
const ISOLATED_WALK_BATCH_SIZE = 32

/**
 * Runs the one task of a worker that `runIsolatedWork` has started.
 * @param requestLine the request, one line of JSON
 */
export async function runIsolatedWorkRequest(
  host: Host,
  handle: Handle,
  requestLine: string,
  write: WriteReportText,
  loadWork: (name: string) => Promise<IsolatedWorkFunction>,
): Promise<void> {
  const send = createReportSender<IsolatedWorkOutcome, IsolatedWorkProgress>(write)
  using isAlive = startPeriodicReports(() => send({}))
  try {
    const { work, about, config, secrets } = JSON.parse(requestLine) as IsolatedWorkRequest
    const session: Session = {
      host,
      config,
      mayHang: true,
      endsWithCall: true,
      isAlive,
      largestBatch: ISOLATED_WALK_BATCH_SIZE,
      secrets: decodeSecrets(secrets),
      note: (note) => send({ progress: { note } }),
      warn: (warn, code) => send({ progress: { warn, code } }),
      progress: (counts) => send({ progress: { counts } }),
    }
    const done = await (await loadWork(work))(session, handle, about as never)
    send({ outcome: { done: done ?? null } })
  } catch (error) {
    send({ outcome: createFailedOutcome(error) })
  }
}

function createFailedOutcome(error: unknown): IsolatedWorkOutcome {
  if (!(error instanceof Refusal)) return { failed: formatError(error) }
  const [isUnknownFormat, isUnresponsive] = [
    error instanceof UnknownFormatRefusal,
    error instanceof UnresponsiveRefusal,
  ]
  return { refused: error.faults, isUnknownFormat, isUnresponsive }
}

function decodeSecrets(secrets: IsolatedWorkRequest['secrets']): PodSecrets {
  return new Map(secrets.map(([name, value]) => [name, Buffer.from(value, 'base64')]))
}
