import { runCsiTask } from '../src/csi/run-task.ts'
import type { CsiTask, CsiTaskOutcome, CsiTaskProgress } from '../src/csi/worker-tasks.ts'
import { markSupervised } from '../src/host/linux/doomed.ts'
import { linuxHost } from '../src/host/linux/index.ts'
import { forbidCoreDumps } from '../src/host/linux/secrets.ts'
import { nodeFs } from '../src/host/read-file.ts'
import { callLog } from '../src/log/call-log.ts'
import { appendLine } from '../src/log/log-file.ts'
import { messageOf } from '../src/refusal/refusal.ts'
import { readConfig } from './config.ts'
import { keepHeapSmall } from './heap.ts'
import { startReporting } from './supervised.ts'
import { runWorkerLoop, type TaskReporting } from './worker-loop.ts'

/** What they are called in the log: what they do is what FlexVolume's calls of these names do. */
const VERBS = { publish: 'mount', unpublish: 'unmount', stats: 'stats' } as const

/** Does the jobs of the CSI server. */
export function workForServer(env: NodeJS.ProcessEnv): Promise<void> {
  markSupervised()
  keepHeapSmall()
  let isAlive = () => {}
  // A worker that waits for its next job reports nothing.
  const report = startReporting(() => isAlive())
  return runWorkerLoop<CsiTask, CsiTaskOutcome, CsiTaskProgress>(
    async (job, progress, { isAlive: tell, limitSilence }) => {
      isAlive = tell
      limitSilence(undefined)
      try {
        return await runTask(job, progress, { isAlive: report, limitSilence }, env)
      } finally {
        isAlive = () => {}
      }
    },
    (error) => ({ failure: { code: 'INTERNAL', message: `modekeep failed: ${messageOf(error)}` } }),
  )
}

async function runTask(
  job: CsiTask,
  progress: (counts: CsiTaskProgress) => void,
  report: TaskReporting,
  env: NodeJS.ProcessEnv,
) {
  // As a call of its own would: the configuration may be another one by now.
  const { config, faults } = await readConfig(env)
  const { directory, volumeId } = job
  const facts = { verb: VERBS[job.do], directory, door: 'csi', volumeId }
  const log = callLog(facts, config.logLevel, (line) => appendLine(nodeFs, config.logFile, line))
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
