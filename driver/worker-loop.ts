import { readStreamLines } from '../src/host/stream-lines.ts'
import type { Session } from '../src/store/session.ts'
import type { WorkerReport } from '../src/worker-pool/workers.ts'
import { closeStderr, writeAll } from './streams.ts'

/** Reports of a worker to its server during a task: see Session. */
export type TaskReporting = Required<Pick<Session, 'isAlive' | 'limitSilence'>>

/**
 * Runs the tasks that a server writes to stdin, one after the other, until stdin ends.
 * @param work must not throw
 * @param died creates the outcome of a task that ends this process with an uncaught exception
 */
export async function runWorkerLoop<Job, Outcome, Progress = never>(
  work: (job: Job, progress: (progress: Progress) => void, report: TaskReporting) => Promise<Outcome>,
  died: (error: unknown) => Outcome,
): Promise<void> {
  /** Ignores a closed pipe: the task continues after its server has ended. */
  const send = (report: WorkerReport<Outcome, Progress>) => void writeAll(`${JSON.stringify(report)}\n`)
  closeStderr()
  process.on('uncaughtException', (error) => {
    send({ outcome: died(error) })
    process.exit(1)
  })
  const report: TaskReporting = {
    isAlive: () => send({}),
    limitSilence: (patienceMs) => send({ patienceMs: patienceMs ?? null }),
  }
  for await (const line of readStreamLines(process.stdin)) {
    send({ outcome: await work(JSON.parse(line), (progress) => send({ progress }), report) })
  }
}
