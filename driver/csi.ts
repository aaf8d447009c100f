import { hostname } from 'node:os'
import type { CommandOfVerb } from '../src/cli/commands/index.ts'
import { readConfig } from '../src/config/read-config.ts'
import { PodInfoOnMountGuard, readPodInfoOnMount } from '../src/frontends/csi/pod-info.ts'
import { probeCsiServer, serveCsi } from '../src/frontends/csi/server.ts'
import type { CsiTask, CsiTaskOutcome, CsiTaskProgress } from '../src/frontends/csi/worker-tasks.ts'
import { startWorkers } from '../src/kernel/linux/child-process.ts'
import { CSI_WORKER_VERB } from '../src/kernel/worker-process.ts'
import { computeSilenceLimitMs } from '../src/worker/given-up.ts'
import { MODEKEEP_VERSION } from './process.ts'
import { logEvent, reportProbeResult, runNodeServer } from './server.ts'

/** Serves kubelet's CSI calls until SIGTERM or SIGINT, or probes the server that runs. @returns the exit status */
export async function runCsiCommand(command: CommandOfVerb<'csi'>, env: NodeJS.ProcessEnv): Promise<number> {
  const { isProbe, api, directory, name, nodeId = hostname() } = command
  if (isProbe) return reportProbeResult(await probeCsiServer(directory, name), 'csi-server')
  const server = { work: 'csi', other: 'another CSI server', facts: { directory, name } } as const
  return runNodeServer(env, server, async ({ config }, stop) => {
    const podInfo = new PodInfoOnMountGuard({
      name,
      isStated: async () => (await readConfig(env)).config.csiPodInfoOnMount,
      readObject: api && (() => readPodInfoOnMount(api, name)),
      now: () => performance.now(),
      log: logEvent,
    })
    const startWorker = startWorkers<CsiTask, CsiTaskOutcome, CsiTaskProgress>(CSI_WORKER_VERB, env)
    const work = { startWorker, patienceMs: computeSilenceLimitMs(config) }
    await serveCsi({ directory, name, version: MODEKEEP_VERSION, nodeId, podInfo, ...work, log: logEvent }, stop)
  })
}
