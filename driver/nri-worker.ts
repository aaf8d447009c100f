import { readConfig } from '../src/config/read-config.ts'
import type { CloneAttachStep } from '../src/container/clone-request.ts'
import { type ContainerTask, type ContainerTaskResult, runContainerTask } from '../src/container/container-task.ts'
import { createFault } from '../src/errors/fault.ts'
import { formatError, Refusal } from '../src/errors/refusal.ts'
import { linuxHost } from '../src/kernel/linux/index.ts'
import { nodeFs } from '../src/kernel/read-file.ts'
import { createCallLog } from '../src/log/call-log.ts'
import { appendLogLine } from '../src/log/log-file.ts'
import { serveWorkerTasks } from '../src/worker/serve.ts'
import { keepHeapSmall, setWorkerPriority } from './process.ts'
import { discardStderr, STDOUT_WORKER_OUTPUT } from './streams.ts'

/** Runs the tasks of the container runtime's plugin. */
export function serveNriWorkerTasks(env: NodeJS.ProcessEnv): Promise<void> {
  setWorkerPriority()
  keepHeapSmall()
  discardStderr()
  return serveWorkerTasks<ContainerTask, ContainerTaskResult, CloneAttachStep>(
    STDOUT_WORKER_OUTPUT,
    (job, report, { isAlive }) => runLoggedContainerTask(job, env, report, isAlive),
    (error) => ({ failure: `modekeep failed: ${formatError(error)}; see its log on the node`, isUnexpected: true }),
  )
}

async function runLoggedContainerTask(
  job: ContainerTask,
  env: NodeJS.ProcessEnv,
  report: (step: CloneAttachStep) => void,
  isAlive: () => void,
): Promise<ContainerTaskResult> {
  const { config, faults, isUnreadable } = await readConfig(env)
  // A faulty rule does not prevent removals. An unreadable configuration does, because the state directory is unknown.
  if (isUnreadable || ((job.do === 'attach' || job.do === 'grant') && faults.length > 0))
    return { failure: new Refusal(faults).message, faults }
  const log = createCallLog(createTaskLogFacts(job), config.logLevel, (line) =>
    appendLogLine(nodeFs, config.logFile, line),
  )
  const { note, warn } = log
  const result = await runContainerTask({ host: linuxHost, config, mayHang: true, isAlive, note, warn }, job, report)
  const { failure } = result
  if (failure === undefined) {
    if (!UNLOGGED_TASK_KINDS.has(job.do)) log.end('Success')
  } else
    log.end(
      'Failure',
      result.isUnexpected ? new Error(failure) : new Refusal(result.faults ?? createFault('map-failed', failure)),
    )
  return result
}

/** Tasks that change no volume. Only their warnings are logged, as nearly every container with a volume has one. */
const UNLOGGED_TASK_KINDS: ReadonlySet<ContainerTask['do']> = new Set(['restrictions', 'check', 'registration'])

/** Verbs in the log. */
const CONTAINER_TASK_LOG_VERBS = {
  attach: 'map',
  release: 'release',
  reconcile: 'reconcile',
  without: 'without',
  restrictions: 'restrict',
  check: 'check',
  grant: 'grant',
  registration: 'registration',
} as const

function createTaskLogFacts(job: ContainerTask): Record<string, unknown> {
  const facts = { verb: CONTAINER_TASK_LOG_VERBS[job.do], door: 'nri' }
  if (job.do === 'reconcile' || job.do === 'registration') return facts
  if (job.do === 'release') return { ...facts, container: job.container, as: job.as }
  if (job.do === 'restrictions') {
    const { container, containerName, pod, mounts } = job.request
    return { ...facts, pod, container, containerName, volumes: mounts }
  }
  const { container, containerName, pod, clones } = job.request
  const volumes = clones.map(({ volume, destination, group }) => ({ volume, destination, group }))
  return { ...facts, pod, container, containerName, volumes }
}
