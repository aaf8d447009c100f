import type * as NodeFs from 'node:fs'
import type { NodeConfig } from '../../config/defaults.ts'
import { formatReasonWithCode } from '../../errors/fault.ts'
import { formatError, quoteValue, Refusal } from '../../errors/refusal.ts'
import { createLocalPathCheck } from '../../kernel/mount-table/responsiveness.ts'
import { hasCallSucceeded } from '../../kernel/system-error.ts'
import { createCallLog } from '../../log/call-log.ts'
import { appendLogLine } from '../../log/log-file.ts'
import { healMounts } from '../../repair/heal.ts'
import { KubeletPods } from '../../repair/kubelets.ts'
import { type HealAction, isFaultyState, type MountFinding, refuseOtherMountNamespace } from '../../repair/state.ts'
import { healSubPathsIsolated, listSubPathDirectories, type SubPathFinding } from '../../repair/sub-paths.ts'
import { type HealWatchOptions, listWatchedSourceDirectories, type RunHeal } from '../../repair/watch.ts'
import type { Session } from '../../state/session.ts'
import { listAllStagedProcesses } from '../../volume/kind/staged.ts'
import { type ContainerFinding, findContainerProblems } from '../node-state/containers.ts'
import { alignColumns } from '../output/output.ts'
import { readKubeletDirectory } from './operands.ts'
import { type HealthEndpoint, type HealthServerStarter, parseListenAddress } from './options.ts'
import type { SessionVerb } from './verb.ts'

/** Options, and the one without which each makes no sense. */
const NEEDED_OPTIONS = {
  'kubelet-dir': 'kubelet-subpaths',
  listen: 'watch',
  metrics: 'listen',
  'answer-calls': 'watch',
}

export const healVerb: SessionVerb<HealCommand, HealDocument> = {
  summary: 'repair mounts whose source, daemon or layers changed',
  text: [
    "Repairs modekeep's mounts without waiting for kubelet's next call: a source that was replaced or deleted, a mount " +
      'that is missing or does not respond, layers mounted over it, interrupted calls, records of deleted pods, and ' +
      "kubelet's subPath mounts of modekeep's volumes whose source an update deleted.",
    'A mount in use is replaced without a gap. Mounts that modekeep does not know stay as they are.',
    "Containers that run without the group that they asked the runtime's plugin for (modekeep nri) are listed, with what to do.",
  ],
  options: {
    'dry-run': 'print what would be done; change nothing',
    watch: 'stay, and repair whenever the mount table or a source changes; ends on SIGTERM',
    'kubelet-subpaths':
      "also repair kubelet's own subPath mounts of ConfigMaps, Secrets and similar volumes whose source an update " +
      "deleted; without it the container's next start fails",
    'kubelet-dir': 'where kubelet keeps its pods (default: /var/lib/kubelet)',
    listen:
      'with --watch: answer HTTP there, /healthz while it runs and /readyz while its heals succeed; :PORT is every address',
    metrics: "with --listen: also answer /metrics, in Prometheus' text format (docs/metrics.md)",
    'answer-calls':
      "with --watch: also answer kubelet's FlexVolume calls, in a process that is ready; a mount then takes a fraction of the time",
    json: 'one JSON document on stdout; with --watch one line each time',
  },
  examples: ['modekeep heal --dry-run --kubelet-subpaths'],
  failure: 'a mount could not be repaired',
  read(args) {
    const { given, refuse } = args
    const isDry = given.has('dry-run')
    const isWatching = given.has('watch')
    if (isWatching && isDry) refuse('--watch repairs and --dry-run does not', 'keep one')
    for (const [name, other] of Object.entries(NEEDED_OPTIONS))
      if (given.has(name) && !given.has(other)) refuse(`--${name} is for --${other}`, 'give both, or leave it out')
    const where = parseListenAddress(given.get('listen') ?? '')
    const listen = where && { ...where, hasMetrics: given.has('metrics') }
    const kubelet = given.has('kubelet-subpaths') ? readKubeletDirectory(args) : undefined
    const answersCalls = given.has('answer-calls') || undefined
    return { verb: 'heal', listen, isDry, isWatching, kubelet, answersCalls }
  },
  run: healNode,
  /** Formats the unhealthy mounts, and the count of healthy ones. */
  lines({ isDry, mounts, subPaths, containers }) {
    const done = (action: HealAction) =>
      isDry && action !== 'none' && action !== 'failed' ? `would be ${action}` : action
    const rows = mounts
      .filter(({ state }) => state !== 'healthy')
      .map((finding) => [finding.state, done(finding.action), finding.directory, formatReasonWithCode(finding)])
    const others = subPaths.map(({ action, mountPoint, reason }) => ['stale', done(action), mountPoint, reason])
    const without = containers.map(({ state, action, pod, name, container, volume, reason, remedy }) => {
      const where = pod === '' ? `container ${container}` : `${pod}/${name} (volume ${volume})`
      return [state, action, where, `${reason}; ${remedy}`]
    })
    const healthy = `${mounts.length - rows.length} of ${mounts.length} mounts healthy`
    return [
      { text: `${healthy}${isDry ? '. Nothing was changed.' : ''}`, style: 'strong' },
      ...alignColumns([...rows, ...others, ...without]),
    ]
  },
  trouble: 'not every mount could be repaired: the reasons are above',
  hasTrouble: ({ mounts }) => mounts.some(({ action }) => action === 'failed'),
}

/** A daemon may have crashed before it was watched. Until its last thread ends, its mount appears healthy. */
const REPAIR_SETTLING_MS = 3000

/** Longest time that a watch waits for one repair before it checks other mounts again. */
const MAX_REPAIR_WAIT_MS = 1000

/** @property kubelet kubelet's directory, if its own subPath mounts are repaired too */
export interface HealCommand {
  verb: 'heal'
  isDry: boolean
  isWatching: boolean
  listen: HealthEndpoint | undefined
  /** A worker of this process answers kubelet's calls. */
  answersCalls?: boolean | undefined
  kubelet: string | undefined
}

export interface HealDocument {
  verb: 'heal'
  isDry: boolean
  /** modekeep's own mounts. */
  mounts: MountFinding[]
  /** Kubelet's subPath mounts for containers: those of modekeep's volumes, and others on request. */
  subPaths: SubPathFinding[]
  /** Containers that run without the requested group: the runtime's plugin did not run, or the group was refused. */
  containers: ContainerFinding[]
}

/** Repairs the mounts on this node, or reports what it would do. */
export function healNode(session: Session, command: HealCommand): Promise<HealDocument> {
  return healNodeOnce(session, command, new KubeletPods())
}

async function healNodeOnce(
  session: Session,
  { isDry, isWatching, kubelet }: HealCommand,
  kubelets: KubeletPods,
): Promise<HealDocument> {
  refuseOtherMountNamespace(session)
  const { inodes } = session.host
  const isThere = (path: string) => hasCallSucceeded(() => inodes.close(inodes.openTrusted(path)))
  // A watch may begin before kubelet.
  if (kubelet !== undefined && !isWatching && !isThere(kubelet)) {
    throw Refusal.of(
      'command',
      `kubelet's directory ${quoteValue(kubelet)} does not exist`,
      'name it with --kubelet-dir',
    )
  }
  const mounts = await healMounts(session, isDry, isWatching ? MAX_REPAIR_WAIT_MS : undefined, kubelets)
  const subPaths = await healSubPathsIsolated(session, kubelet, { dryRun: isDry })
  const containers = findContainerProblems(session)
  session.note({
    found: mounts.filter(({ state }) => isFaultyState(state)),
    subPaths,
    ...(containers.length > 0 && { containers }),
  })
  return { verb: 'heal', isDry, mounts, subPaths, containers }
}

/** Calls `heal` after every change on the node, until a signal ends it. */
export type NodeWatcher = (
  heal: RunHeal,
  events: Pick<HealWatchOptions, 'failed'> & { warn(message: string): void },
) => Promise<void>

interface HealWatchContext {
  /** Writes the log. */
  fs: typeof NodeFs
  watch: NodeWatcher
  /** Reads the node's current configuration. @throws while it is faulty */
  configNow(): Promise<NodeConfig>
  /** Prints the findings of a heal. */
  report(found: HealDocument): void
  serveHealth: HealthServerStarter
  /** Returns all metrics in Prometheus' text format. */
  metrics(session: Session): Promise<string>
}

/** Runs `heal --watch`: heals after each change until a signal ends it. Unchanged findings are reported once. */
export async function healAfterEachChange(
  session: Session,
  command: HealCommand,
  { fs, watch, configNow, report, serveHealth, metrics }: HealWatchContext,
): Promise<void> {
  let { config } = session
  // A warning that each heal repeats is logged once.
  const last = { repeated: 0, reported: 0 }
  const newLog = () =>
    createCallLog({ verb: 'heal' }, config.logLevel, (line) => appendLogLine(fs, config.logFile, line), last)
  const kubelets = new KubeletPods()
  let lastReported: string | undefined
  let lastFailure = ''
  let notReady: string | undefined = 'no heal has ended yet'
  let lastDone = Number.NEGATIVE_INFINITY
  const healNow: RunHeal = async () => {
    config = await configNow()
    const log = newLog()
    const current = { ...session, config, note: log.note, warn: log.warn }
    // A daemon that ends during the heal is included, so its mount is checked again.
    const daemons = () => listAllStagedProcesses(session.host, config.stateDir).map(({ pid }) => pid)
    const before = daemons()
    const document = await healNodeOnce(current, command, kubelets)
    const { mounts, subPaths, containers } = document
    const others = containers.map(({ pod, name, volume, state, reason }) => ({ pod, name, volume, state, reason }))
    const findings = normalizeFindings([mounts.filter(({ state }) => isFaultyState(state)), subPaths, others])
    // A repeated repair is reported each time, though its findings are equal.
    const hasRepaired = [...mounts, ...subPaths].some(({ action }) => action !== 'none' && action !== 'failed')
    if (hasRepaired) lastDone = performance.now()
    if (hasRepaired || (findings !== lastReported && findings !== NORMALIZED_EMPTY_FINDINGS)) {
      log.end('Success')
      report(document)
    } else if (lastReported === undefined) report(document)
    lastFailure = ''
    lastReported = findings
    notReady = undefined
    // A running call may have read the earlier state, and a failed repair may succeed the next time.
    const isUndone = mounts.some(({ state, action }) => state === 'in progress' || action === 'failed')
    const ofSubPaths = listSubPathDirectories(current, command.kubelet)
    // A lookup in a server's directory may block indefinitely, so only local directories are watched.
    const sources = listWatchedSourceDirectories(current)
    const watched = sources.filter(createLocalPathCheck(session.host))
    return {
      watched: [...watched, ...ofSubPaths],
      isBlind:
        watched.length < sources.length ||
        ![...watched, ...ofSubPaths].every((path) => session.host.inodes.isCached(path)) ||
        mounts.some(({ state, action, code }) => {
          if (state === 'busy') return true
          if (state === 'orphaned') return action === 'none'
          return state === 'unknown' && code !== 'mount-unrecorded'
        }),
      daemons: [...before, ...daemons()],
      isUnsettled: isUndone || performance.now() - lastDone < REPAIR_SETTLING_MS,
    }
  }
  const failed = (error: unknown) => {
    notReady = formatError(error)
    const failure = normalizeFindings(String(error))
    if (failure !== lastFailure) newLog().end('Failure', error)
    lastFailure = failure
  }
  const { listen } = command
  const scrape = listen?.hasMetrics ? () => metrics({ ...session, config, note: () => {}, warn: () => {} }) : undefined
  using _server = listen && (await serveHealth(listen, { notReady: () => notReady, metrics: scrape }))
  await watch(healNow, { warn: (message) => newLog().warn(message, 'command'), failed })
}

const NORMALIZED_EMPTY_FINDINGS = '[[],[],[]]'

/** Formats findings without digits, so that a new time or process id does not count as a change. */
function normalizeFindings(findings: unknown): string {
  return JSON.stringify(findings).replaceAll(/\d+/g, '0')
}
