import type { CommandOfVerb } from '../src/cli/commands/index.ts'
import { readConfig } from '../src/config/read-config.ts'
import type { CloneAttachStep } from '../src/container/clone-request.ts'
import { removeEmptyStagingMount } from '../src/container/clone-staging.ts'
import type { ContainerTask, ContainerTaskResult } from '../src/container/container-task.ts'
import { createContainerEventHandler } from '../src/frontends/nri/container-lifecycle.ts'
import { NodeReaderThread, type NodeReaderThreadData } from '../src/frontends/nri/node-reader.ts'
import {
  MOUNT_RESTRICTIONS_GIVE_UP_MS,
  MOUNT_RESTRICTIONS_WAIT_MS,
  restrictModekeepMounts,
} from '../src/frontends/nri/own-mounts.ts'
import { NRI_CONNECTION_TIMING, runNriPlugin } from '../src/frontends/nri/plugin.ts'
import {
  CONTAINER_DEADLINE_MS,
  createCloneService,
  createContainerTaskSupervision,
  createPluginRecordWriter,
  createRestrictionsTaskReader,
  LOST_CONTAINER_TASK_OUTCOMES,
  NRI_WORKER_LIMITS,
} from '../src/frontends/nri/worker-tasks.ts'
import { startWorkers } from '../src/kernel/linux/child-process.ts'
import { linuxHost } from '../src/kernel/linux/index.ts'
import { NRI_WORKER_VERB } from '../src/kernel/worker-process.ts'
import { explainInactivePlugin, findRunningPlugin, nriPluginRecord } from '../src/state/process-records.ts'
import { type Session, warnOnFailure } from '../src/state/session.ts'
import { computeSilenceLimitMs } from '../src/worker/given-up.ts'
import { WorkerPool } from '../src/worker/pool.ts'
import { raiseThreadPriority, startThread } from './process.ts'
import { LogEventQueue, logEvent, reportProbeResult, runNodeServer } from './server.ts'

/** Serves the container runtime until SIGTERM or SIGINT, or probes the plugin that runs. @returns the exit status */
export async function runNriCommand(command: CommandOfVerb<'nri'>, env: NodeJS.ProcessEnv): Promise<number> {
  const { isProbe, directory, socket } = command
  if (isProbe) {
    const { config } = await readConfig(env)
    return reportProbeResult(explainInactivePlugin(findRunningPlugin({ host: linuxHost, config })), 'nri-plugin')
  }
  const server = { work: 'nri', other: 'another plugin', facts: { directory, socket } } as const
  return runNodeServer(env, server, (store, stop) => serveContainerRuntime(command, store, stop, env))
}

async function serveContainerRuntime(
  { directory, socket, criSocket, index }: CommandOfVerb<'nri'>,
  store: Pick<Session, 'host' | 'config'>,
  stop: AbortSignal,
  env: NodeJS.ProcessEnv,
): Promise<void> {
  // The reader of stdout may be slow, and the thread that answers the runtime must not wait for it.
  const events = new LogEventQueue()
  const log = events.enqueue.bind(events)
  const workers = new WorkerPool(
    startWorkers<ContainerTask, ContainerTaskResult, CloneAttachStep>(NRI_WORKER_VERB, env),
    NRI_WORKER_LIMITS,
    LOST_CONTAINER_TASK_OUTCOMES,
    createContainerTaskSupervision(computeSilenceLimitMs(store.config)),
  )
  const failed = (job: string, message: string) => log('warn', 'failed', { job, message })
  try {
    const clones = createCloneService(workers, failed)
    const data: NodeReaderThreadData = { criSocket, env: { MODEKEEP_CONFIG: env.MODEKEEP_CONFIG } }
    using reader = new NodeReaderThread(() => startThread('node-reader', data))
    // The reader's code is loaded once it has replied, so that the first container does not wait for that.
    await reader.readMap()
    // Threads inherit the priority, so it is raised after they have been started.
    raiseThreadPriority()
    const mapping = createContainerEventHandler({
      kubeletDir: directory,
      clones,
      readConfig: () => reader.readMap(),
      deadlineMs: CONTAINER_DEADLINE_MS,
      readPodVolumes: (kubeletDir, uid) => reader.readPodVolumes(kubeletDir, uid),
      readProcessGroups: (sandbox) => reader.readProcessGroups(sandbox),
      log,
    })
    const handler = restrictModekeepMounts(mapping, {
      kubeletDir: directory,
      readRestrictions: createRestrictionsTaskReader(workers),
      waitMs: MOUNT_RESTRICTIONS_WAIT_MS,
      giveUpMs: MOUNT_RESTRICTIONS_GIVE_UP_MS,
      log,
    })
    const writeRecord = createPluginRecordWriter(workers, failed)
    const listSandboxes = () => reader.listSandboxes()
    await runNriPlugin({ socket, index, handler, timing: NRI_CONNECTION_TIMING, listSandboxes, writeRecord, log }, stop)
  } finally {
    workers.close()
    await events.flush()
  }
  const warn = (message: string) => logEvent('warn', 'end', { message })
  warnOnFailure({ warn }, 'cannot unmount the staging directory of clones', () =>
    removeEmptyStagingMount({ ...store, warn }),
  )
  // Doctor reports a recorded plugin that does not run. This one ends on request, so its record is removed.
  nriPluginRecord.remove(store, undefined)
}
