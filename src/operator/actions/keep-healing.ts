import type * as NodeFs from 'node:fs'
import { sourceDirectories } from '../../heal/heal.ts'
import type { HealAction } from '../../heal/state.ts'
import { subPathVolumes } from '../../heal/sub-paths.ts'
import type { Heal, WatchOptions } from '../../heal/watch.ts'
import { CallLog } from '../../log/call-log.ts'
import { appendLine } from '../../log/log-file.ts'
import type { NodeConfig } from '../../request/defaults.ts'
import type { Session } from '../../store/session.ts'
import { stagedProcesses } from '../../volume/kind/staged.ts'
import { type HealCommand, type HealDocument, heal } from './heal.ts'

/** Milliseconds. A daemon may have died before it was known: until the last of its threads has ended its mount looks healthy. */
const SETTLING = 3000

/** Calls a heal after every change on the node until it is told to end; a heal that is under way is finished. */
export type Watch = (heal: Heal, told: Pick<WatchOptions, 'failed'> & { warn(message: string): void }) => Promise<void>

interface Surroundings {
  /** For the log. */
  fs: typeof NodeFs
  watch: Watch
  /** The node's configuration as it is at each heal; throws while it is faulty. */
  configNow(): Promise<NodeConfig>
  /** Prints what a heal found. */
  tell(found: HealDocument): void
}

/** `heal --watch`: heals after every change until it is told to end. What stays as it was at the last heal is not told again. */
export async function keepHealing(
  session: Session,
  order: HealCommand,
  { fs, watch, configNow, tell }: Surroundings,
): Promise<void> {
  let { config } = session
  const newLog = () => new CallLog({ verb: 'heal' }, config.logLevel, (line) => appendLine(fs, config.logFile, line))
  let lastTold = ''
  let lastFailure = ''
  let lastDone = Number.NEGATIVE_INFINITY
  await watch(
    async () => {
      config = await configNow()
      const log = newLog()
      const hearing = { ...session, config, note: log.note.bind(log), warn: log.warn.bind(log) }
      // One that ends while the others are looked at counts too.
      const before = stagedProcesses(session.host, config.stateDir)
      const document = await heal(hearing, order)
      const found = document.mounts.filter(({ state }) => state !== 'healthy' && state !== 'busy')
      const news = toCompare([found, document.subPaths])
      lastFailure = ''
      if (hasDone(document)) lastDone = performance.now()
      if (hasDone(document) || (news !== lastTold && news !== '[[],[]]')) {
        log.end('Success')
        tell(document)
      }
      lastTold = news
      const kubelets = order.kubelet === undefined ? [] : subPathVolumes(hearing, order.kubelet)
      return {
        watched: [...sourceDirectories(hearing), ...kubelets],
        daemons: [...before, ...stagedProcesses(session.host, config.stateDir)],
        isUnsettled: isUndone(document) || performance.now() - lastDone < SETTLING,
      }
    },
    {
      warn: (message) => newLog().warn(message),
      failed: (error) => {
        const failure = toCompare(String(error))
        if (failure !== lastFailure) newLog().end('Failure', error)
        lastFailure = failure
      },
    },
  )
}

/** Without times, process ids and the like: the same trouble is no news. */
function toCompare(told: unknown): string {
  return JSON.stringify(told).replaceAll(/\d+/g, '0')
}

/** The same may have to be repaired again and again: then it is told each time. */
function hasDone({ mounts, subPaths }: HealDocument): boolean {
  const isDone = ({ action }: { action: HealAction }) => action !== 'none' && action !== 'failed'
  return mounts.some(isDone) || subPaths.some(isDone)
}

/** A call that was at work may have seen what was before; what failed may work the next time. */
function isUndone({ mounts }: HealDocument): boolean {
  return mounts.some(({ state, action }) => state === 'busy' || action === 'failed')
}
