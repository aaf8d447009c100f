import type * as NodeFs from 'node:fs'
import { LOST } from '../../heal/find-state.ts'
import { healMounts, sourceDirectories } from '../../heal/heal.ts'
import { healSubPathsIsolated } from '../../heal/isolated-sub-paths.ts'
import { Kubelets } from '../../heal/kubelets.ts'
import { refuseOtherNamespace } from '../../heal/namespace.ts'
import { type Finding, isUnwell } from '../../heal/state.ts'
import { type SubPathFinding, subPathVolumes } from '../../heal/sub-paths.ts'
import type { Heal, WatchOptions } from '../../heal/watch.ts'
import { succeeds } from '../../host/file-error.ts'
import { callLog } from '../../log/call-log.ts'
import { appendLine } from '../../log/log-file.ts'
import { localPaths } from '../../mount-table/silence.ts'
import { messageOf, quoted, Refusal } from '../../refusal/refusal.ts'
import type { NodeConfig } from '../../request/defaults.ts'
import type { Session } from '../../store/session.ts'
import { stagedProcesses } from '../../volume/kind/staged.ts'
import { type ContainerFinding, findContainerProblems } from './containers.ts'
import type { HealthEndpoint, ServeHealth } from './health.ts'

/** Milliseconds. A daemon may have died before it was known: until its last thread ends its mount looks healthy. */
const SETTLING_MS = 3000

/** Milliseconds, that a watch waits for one repair before it looks at other mounts again. */
const REPAIR_PATIENCE_MS = 1000

/** @property kubelet where kubelet keeps its pods, if its own subPath mounts are to be repaired too */
export interface HealCommand {
  verb: 'heal'
  isDry: boolean
  isWatching: boolean
  listen: HealthEndpoint | undefined
  kubelet: string | undefined
}

export interface HealDocument {
  verb: 'heal'
  isDry: boolean
  /** modekeep's own mounts. */
  mounts: Finding[]
  /** Kubelet's binds for containers: of modekeep's own volumes, and of others where requested. */
  subPaths: SubPathFinding[]
  /** Those that run without the group they asked for: the runtime's plugin was away, or it was not possible. */
  containers: ContainerFinding[]
}

/** Repairs the mounts on this node, or says what it would do. */
export function healNode(session: Session, command: HealCommand): Promise<HealDocument> {
  return healOnce(session, command, new Kubelets())
}

async function healOnce(
  session: Session,
  { isDry, isWatching, kubelet }: HealCommand,
  kubelets: Kubelets,
): Promise<HealDocument> {
  refuseOtherNamespace(session)
  const { inodes } = session.host
  const isThere = (path: string) => succeeds(() => inodes.close(inodes.openTrusted(path)))
  // A watch may begin before kubelet.
  if (kubelet !== undefined && !isWatching && !isThere(kubelet)) {
    throw new Refusal(`kubelet's directory ${quoted(kubelet)} does not exist: name it with --kubelet-dir`)
  }
  const mounts = await healMounts(session, isDry, isWatching ? REPAIR_PATIENCE_MS : undefined, kubelets)
  const subPaths = await healSubPathsIsolated(session, kubelet, { dryRun: isDry })
  const containers = findContainerProblems(session)
  session.note({
    found: mounts.filter(({ state }) => isUnwell(state)),
    subPaths,
    ...(containers.length > 0 && { containers }),
  })
  return { verb: 'heal', isDry, mounts, subPaths, containers }
}

/** Calls a heal after every change on the node until it is told to end. */
export type WatchNode = (
  heal: Heal,
  told: Pick<WatchOptions, 'failed'> & { warn(message: string): void },
) => Promise<void>

interface HealContext {
  /** For the log. */
  fs: typeof NodeFs
  watch: WatchNode
  /** The node's configuration as it is at each heal; throws while it is faulty. */
  configNow(): Promise<NodeConfig>
  /** Prints what a heal found. */
  tell(found: HealDocument): void
  serveHealth: ServeHealth
  /** In Prometheus' text format. */
  metrics(session: Session): Promise<string>
}

/** `heal --watch`: heals after each change until it is told to end. What stays as it was is not told again. */
export async function keepHealing(
  session: Session,
  order: HealCommand,
  { fs, watch, configNow, tell, serveHealth, metrics }: HealContext,
): Promise<void> {
  let { config } = session
  // What each heal warns of is not written each time.
  const last = { repeated: 0, told: 0 }
  const newLog = () => callLog({ verb: 'heal' }, config.logLevel, (line) => appendLine(fs, config.logFile, line), last)
  const kubelets = new Kubelets()
  let lastTold: string | undefined
  let lastFailure = ''
  let notReady: string | undefined = 'no heal has ended yet'
  let lastDone = Number.NEGATIVE_INFINITY
  const healNow: Heal = async () => {
    config = await configNow()
    const log = newLog()
    const hearing = { ...session, config, note: log.note, warn: log.warn }
    // One that ends while the others are looked at counts too.
    const daemons = () => stagedProcesses(session.host, config.stateDir).map(({ pid }) => pid)
    const before = daemons()
    const document = await healOnce(hearing, order, kubelets)
    const { mounts, subPaths, containers } = document
    const others = containers.map(({ pod, name, volume, state, reason }) => ({ pod, name, volume, state, reason }))
    const news = normalizeForComparison([mounts.filter(({ state }) => isUnwell(state)), subPaths, others])
    // The same may have to be repaired again and again: then it is told each time.
    const hasDone = [...mounts, ...subPaths].some(({ action }) => action !== 'none' && action !== 'failed')
    if (hasDone) lastDone = performance.now()
    if (hasDone || (news !== lastTold && news !== NO_FINDINGS)) {
      log.end('Success')
      tell(document)
    } else if (lastTold === undefined) tell(document)
    lastFailure = ''
    lastTold = news
    notReady = undefined
    // A call that was at work may have seen what was before; what failed may work the next time.
    const isUndone = mounts.some(({ state, action }) => state === 'in progress' || action === 'failed')
    const ofSubPaths = subPathVolumes(hearing, order.kubelet)
    // Whoever looks at a server's directory may wait for it for ever.
    const sources = sourceDirectories(hearing)
    const watched = sources.filter(localPaths(session.host))
    return {
      watched: [...watched, ...ofSubPaths],
      isBlind:
        watched.length < sources.length ||
        ![...watched, ...ofSubPaths].every((path) => session.host.inodes.isCached(path)) ||
        mounts.some(({ state, action, reason }) => {
          if (state === 'busy') return true
          if (state === 'orphaned') return action === 'none'
          return state === 'unknown' && reason !== LOST.reason
        }),
      daemons: [...before, ...daemons()],
      isUnsettled: isUndone || performance.now() - lastDone < SETTLING_MS,
    }
  }
  const failed = (error: unknown) => {
    notReady = messageOf(error)
    const failure = normalizeForComparison(String(error))
    if (failure !== lastFailure) newLog().end('Failure', error)
    lastFailure = failure
  }
  const { listen } = order
  const scrape = listen?.hasMetrics ? () => metrics({ ...session, config, note: () => {}, warn: () => {} }) : undefined
  using _server = listen && (await serveHealth(listen, { notReady: () => notReady, metrics: scrape }))
  await watch(healNow, { warn: (message) => newLog().warn(message), failed })
}

const NO_FINDINGS = '[[],[],[]]'

/** Without times, process ids and the like: the same trouble is no news. */
function normalizeForComparison(told: unknown): string {
  return JSON.stringify(told).replaceAll(/\d+/g, '0')
}
