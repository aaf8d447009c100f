import { hostname } from 'node:os'
import type { CommandOf } from '../src/cli/commands/index.ts'
import { FAILED, OK } from '../src/cli/operate.ts'
import { PodInfoGuard, readPodInfoOnMount } from '../src/csi/pod-info.ts'
import { probeServer, serveCsi } from '../src/csi/server.ts'
import type { CsiTask, CsiTaskOutcome, CsiTaskProgress } from '../src/csi/worker-tasks.ts'
import { renderFault } from '../src/errors/fault.ts'
import { refuseOtherNamespace } from '../src/heal/state.ts'
import { startWorkers } from '../src/host/linux/child-process.ts'
import { linuxHost } from '../src/host/linux/index.ts'
import { CSI_WORKER_VERB } from '../src/host/worker-process.ts'
import { readConfig } from '../src/request/read-config.ts'
import { computePatienceMs } from '../src/worker/given-up.ts'
import { createEndSignal, keepHeapSmall, VERSION } from './process.ts'
import { logEvent, logFailure, reportProbe, waitForNodeLock } from './server.ts'

/** Serves kubelet's CSI calls until SIGTERM or SIGINT, or probes the server that runs. @returns the exit status */
export async function csi(command: CommandOf<'csi'>, env: NodeJS.ProcessEnv): Promise<number> {
  const { isProbe, directory, name } = command
  return isProbe ? reportProbe(await probeServer(directory, name), 'csi-server') : serve(command, env)
}

async function serve(
  { api, directory, name, nodeId = hostname() }: CommandOf<'csi'>,
  env: NodeJS.ProcessEnv,
): Promise<number> {
  const stop = createEndSignal()
  keepHeapSmall()
  try {
    const { config, faults } = await readConfig(env)
    for (const fault of faults) logEvent('warn', 'configuration', { message: renderFault(fault) })
    const store = { host: linuxHost, config }
    refuseOtherNamespace({ ...store, note: () => {}, warn: () => {} })
    logEvent('info', 'start', { directory, name, version: VERSION })
    using lock = await waitForNodeLock(store, 'csi', 'another CSI server', stop)
    if (lock === undefined) return OK
    const startWorker = startWorkers<CsiTask, CsiTaskOutcome, CsiTaskProgress>(CSI_WORKER_VERB, env)
    const podInfo = new PodInfoGuard({
      name,
      isStated: async () => (await readConfig(env)).config.csiPodInfoOnMount,
      readObject: api && (() => readPodInfoOnMount(api, name)),
      now: () => performance.now(),
      log: logEvent,
    })
    const work = { startWorker, patienceMs: computePatienceMs(config) }
    await serveCsi({ directory, name, version: VERSION, nodeId, podInfo, ...work, log: logEvent }, stop)
    logEvent('info', 'end')
    return OK
  } catch (error) {
    logFailure(error)
    return FAILED
  }
}
