import { execa } from 'execa'
import { CHILD_OPTIONS, createArguments, OWN_EXECUTABLE, waitUntilExit } from '../src/host/linux/child-process.ts'
import { readStreamLines } from '../src/host/stream-lines.ts'
import type { StartWorker, WorkerReport } from '../src/worker-pool/workers.ts'

/**
 * Starts workers as processes of their own, which continue after this process has ended.
 * @param entry the executable's first argument for such a worker
 */
export function startWorkers<Job, Outcome, Progress = never>(
  entry: string,
  { MODEKEEP_CONFIG }: NodeJS.ProcessEnv,
): StartWorker<Job, Outcome, Progress> {
  const env = MODEKEEP_CONFIG === undefined ? {} : { MODEKEEP_CONFIG }
  return ({ onReport, onExit }) => {
    const child = execa(OWN_EXECUTABLE, createArguments(entry), {
      ...CHILD_OPTIONS,
      env,
      stdin: 'pipe',
      stdout: 'pipe',
      stderr: 'ignore',
    })
    const exited = waitUntilExit(child.nodeChildProcess)
    // A write to a worker that has ended fails; its exit is reported instead.
    child.stdin.on('error', () => {})
    void readReports()

    async function readReports(): Promise<void> {
      try {
        for await (const line of readStreamLines(child.stdout))
          onReport(JSON.parse(line) as WorkerReport<Outcome, Progress>)
      } catch {
        // The line is no valid report, or the pipe broke.
        child.kill('SIGKILL')
      }
      if (child.pid === undefined) return onExit(`could not be started (${(await child).code ?? 'no reason is known'})`)
      const { code, signal } = await exited
      onExit(signal === null ? `ended with exit status ${code}` : `was ended by ${signal}`)
    }

    return {
      pid: child.pid,
      send: (job) => void child.stdin.write(`${JSON.stringify(job)}\n`),
      kill: () => void child.kill('SIGKILL'),
      close: () => void child.stdin.end(),
    }
  }
}
