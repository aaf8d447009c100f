import { readConfig } from '../src/config/read-config.ts'
import { formatError } from '../src/errors/refusal.ts'
import { rehearsePublication, runCsiTask } from '../src/frontends/csi/run-task.ts'
import {
  CSI_TASK_WORDS,
  type CsiTask,
  type CsiTaskOutcome,
  type CsiTaskProgress,
} from '../src/frontends/csi/worker-tasks.ts'
import { linuxHost } from '../src/kernel/linux/index.ts'
import { forbidCoreDumps, markProcessSupervised } from '../src/kernel/linux/processes.ts'
import { nodeFs } from '../src/kernel/read-file.ts'
import { createCallLog } from '../src/log/call-log.ts'
import { appendLogLine } from '../src/log/log-file.ts'
import { serveWorkerTasks, startPeriodicReports, type TaskReporting } from '../src/worker/serve.ts'
import { keepHeapSmall } from './process.ts'
import { discardStderr, STDOUT_WORKER_OUTPUT } from './streams.ts'

/** Runs the tasks of the CSI server. */
export function serveCsiWorkerTasks(env: NodeJS.ProcessEnv): Promise<void> {
  markProcessSupervised()
  keepHeapSmall()
  let isAlive = () => {}
  // A worker that waits for its next task reports nothing.
  const report = startPeriodicReports(() => isAlive())
  discardStderr()
  void loadPublicationModules(env)
  return serveWorkerTasks<CsiTask, CsiTaskOutcome, CsiTaskProgress>(
    STDOUT_WORKER_OUTPUT,
    async (job, progress, { isAlive: reportAlive, limitSilence }) => {
      isAlive = reportAlive
      limitSilence(undefined)
      try {
        return await runLoggedCsiTask(job, progress, { isAlive: report, limitSilence }, env)
      } finally {
        isAlive = () => {}
      }
    },
    (error) => ({ failure: { code: 'INTERNAL', message: `modekeep failed: ${formatError(error)}` } }),
  )
}

/** Loads and compiles what the first publication needs, so that its pod does not wait for it. A task reports what fails here. */
async function loadPublicationModules(env: NodeJS.ProcessEnv): Promise<void> {
  await Promise.allSettled([
    readConfig(env).then(({ config }) => rehearsePublication({ host: linuxHost, config })),
    import('../src/mount/run.ts'),
  ])
}

async function runLoggedCsiTask(
  job: CsiTask,
  progress: (counts: CsiTaskProgress) => void,
  report: TaskReporting,
  env: NodeJS.ProcessEnv,
) {
  // Each task reads the configuration, because the file may have changed since the last one.
  const { config, faults } = await readConfig(env)
  const { directory, volumeId } = job
  const facts = { verb: CSI_TASK_WORDS[job.do].verb, directory, door: 'csi', volumeId }
  const log = createCallLog(facts, config.logLevel, (line) => appendLogLine(nodeFs, config.logFile, line))
  const waits = (counts: CsiTaskProgress) => progress({ ...counts, isAnothers: true })
  return runCsiTask(job, {
    host: linuxHost,
    config,
    mayHang: true,
    ...report,
    givenUp: job.givenUp,
    log,
    progress,
    waits,
    configFaults: faults,
    forbidCoreDumps,
  })
}
