import { linesOf } from '../src/host/lines.ts'
import type { Session } from '../src/store/session.ts'
import type { WorkerReport } from '../src/worker-pool/workers.ts'
import { closeStderr, writeAll } from './streams.ts'

/** What a worker reports to the server during a job: see Session. */
export type TaskReporting = Required<Pick<Session, 'isAlive' | 'limitSilence'>>

/**
 * Does the jobs that a server writes to stdin, one after the other, until that ends.
 * @param work must not throw
 * @param died what is answered of a job at which this process fails
 */
export async function runWorkerLoop<Job, Outcome, Progress = never>(
  work: (job: Job, progress: (progress: Progress) => void, report: TaskReporting) => Promise<Outcome>,
  died: (error: unknown) => Outcome,
): Promise<void> {
  /** A server that is gone hears nothing: the job goes on. */
  const say = (said: WorkerReport<Outcome, Progress>) => void writeAll(`${JSON.stringify(said)}\n`)
  closeStderr()
  process.on('uncaughtException', (error) => {
    say({ outcome: died(error) })
    process.exit(1)
  })
  const report: TaskReporting = {
    isAlive: () => say({}),
    limitSilence: (patienceMs) => say({ patienceMs: patienceMs ?? null }),
  }
  for await (const line of linesOf(process.stdin)) {
    say({ outcome: await work(JSON.parse(line), (progress) => say({ progress }), report) })
  }
}
