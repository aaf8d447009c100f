import type { AttachStep } from '../src/container-mount/order.ts'
import { removeEmptyStand } from '../src/container-mount/stand.ts'
import type { ContainerJob, ContainerResult } from '../src/container-mount/work.ts'
import { refuseOtherNamespace } from '../src/heal/namespace.ts'
import { linuxHost } from '../src/host/linux/index.ts'
import { nodeContainers } from '../src/nri/containers.ts'
import { CRI_SOCKETS } from '../src/nri/cri-sockets.ts'
import { clonesBy, DEADLINE_MS, LIMITS, LOST, restrictionsBy, WORKER } from '../src/nri/jobs.ts'
import { lookAtPod } from '../src/nri/look.ts'
import { RESTRICTIONS_GIVE_UP_MS, RESTRICTIONS_WAIT_MS, restrictOwnMounts } from '../src/nri/own-mounts.ts'
import { runPlugin, TIMING } from '../src/nri/plugin.ts'
import { FAILED, OK } from '../src/operator/operate.ts'
import type { CommandOf } from '../src/operator/verbs/index.ts'
import { messageOf } from '../src/refusal/refusal.ts'
import type { Store } from '../src/store/places.ts'
import { type PluginRecord, pluginRecord, runningPlugin, whyNotAsked } from '../src/store/plugin-record.ts'
import { orWarn, type Session } from '../src/store/session.ts'
import { Workers } from '../src/worker-pool/workers.ts'
import { readConfig } from './config.ts'
import { EventQueue, tellEvent, tellFailure } from './events.ts'
import { nodeLock } from './node-lock.ts'
import { PodGroupsThread } from './pod-groups-thread.ts'
import { raisePriority } from './priority.ts'
import { tellProbe } from './probe.ts'
import { endSignal } from './signals.ts'
import { VERSION } from './version.ts'
import { startWorkers } from './workers.ts'

/** Serves the container runtime until SIGTERM or SIGINT, or looks whether another one does. @returns the exit status */
export async function nri(command: CommandOf<'nri'>, env: NodeJS.ProcessEnv): Promise<number> {
  const { config, faults } = await readConfig(env)
  const store = { host: linuxHost, config }
  return command.isProbe ? tellProbe(whyNotAsked(runningPlugin(store))) : serve(command, store, faults, env)
}

async function serve(
  { directory, socket, criSocket, index }: CommandOf<'nri'>,
  store: Pick<Session, 'host' | 'config'>,
  faults: readonly string[],
  env: NodeJS.ProcessEnv,
): Promise<number> {
  const stop = endSignal()
  try {
    for (const message of faults) tellEvent('warn', 'configuration', { message })
    refuseOtherNamespace({ ...store, note: () => {}, warn: () => {} })
    tellEvent('info', 'start', { directory, socket, version: VERSION })
    using lock = await nodeLock(store, 'nri', 'another plugin', stop)
    if (lock === undefined) return OK
    // Whoever reads stdout may be slow, and the thread that answers the runtime does not wait for it.
    const events = new EventQueue()
    const tell = events.tell.bind(events)
    const workers = new Workers(startWorkers<ContainerJob, ContainerResult, AttachStep>(WORKER, env), LIMITS, LOST)
    try {
      const clones = clonesBy(workers, (job, message) => tell('warn', 'failed', { job, message }))
      const readMap = () => readConfig(env)
      const sockets = criSocket === undefined ? CRI_SOCKETS : [criSocket]
      using groups = new PodGroupsThread(sockets)
      // After what inherits the priority has been started.
      raisePriority()
      const mapping = nodeContainers({
        kubeletDir: directory,
        clones,
        readConfig: readMap,
        deadlineMs: DEADLINE_MS,
        lookAtPod,
        groupsOfPod: (sandbox) => groups.of(sandbox),
        log: tell,
      })
      const containers = restrictOwnMounts(mapping, {
        kubeletDir: directory,
        readRestrictions: restrictionsBy(workers),
        waitMs: RESTRICTIONS_WAIT_MS,
        giveUpMs: RESTRICTIONS_GIVE_UP_MS,
        log: tell,
      })
      await runPlugin({ socket, index, containers, timing: TIMING, log: recording(store, socket, tell) }, stop)
    } finally {
      workers.close()
      await events.flush()
    }
    const warn = (message: string) => tellEvent('warn', 'end', { message })
    orWarn({ warn }, 'cannot unmount the staging directory of clones', () => removeEmptyStand({ ...store, warn }))
    // Nobody is to miss one that was ended on purpose.
    pluginRecord.remove(store, undefined)
    tellEvent('info', 'end')
    return OK
  } catch (error) {
    tellFailure(error)
    return FAILED
  }
}

/** Tells events, and keeps on record whether the runtime asks. */
function recording(store: Store, socket: string, tell: typeof tellEvent): typeof tellEvent {
  let last: PluginRecord = { isRegistered: false, runtime: '', since: Date.now(), socket }
  const record = (change: Partial<PluginRecord>) => {
    last = { ...last, ...change, since: Date.now() }
    try {
      pluginRecord.write(store, last)
    } catch (error) {
      tell('warn', 'failed', { message: messageOf(error) })
    }
  }
  record({})
  return (level, event, facts = {}) => {
    tell(level, event, facts)
    if (event === 'configured') {
      const nri = typeof facts.nri === 'string' ? facts.nri : undefined
      last = { ...last, runtime: `${facts.runtime} ${facts.version}`, nri }
    }
    if (event === 'synchronized') record({ isRegistered: true })
    else if (event === 'away' && last.isRegistered) record({ isRegistered: false })
  }
}
