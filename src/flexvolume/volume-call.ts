import { refuseGivenUp } from '../fs-group/given-up-call.ts'
import type { CallLog } from '../log/call-log.ts'
import { mountAnywhere } from '../mount/anywhere.ts'
import type { MountResult } from '../mount/mount.ts'
import type { WalkCounts } from '../ownership/walk/report.ts'
import { printable } from '../refusal/printable.ts'
import { Refusal } from '../refusal/refusal.ts'
import { readSecrets, SECRET_PREFIX } from '../request/json-options.ts'
import type { MountRequest } from '../request/mount-request.ts'
import { findPodName, readRequest } from '../request/request.ts'
import { formatSource } from '../request/source.ts'
import type { Session } from '../store/session.ts'
import { kinds } from '../volume/index.ts'
import type { FlexVolumeCall } from './call.ts'
import { createFailureReply, type FlexVolumeReply } from './reply.ts'

export type VolumeCall = Extract<FlexVolumeCall, { verb: 'mount' | 'unmount' }>
type MountArguments = Pick<Extract<FlexVolumeCall, { verb: 'mount' }>, 'directory' | 'options'>

/** What the process gives a call; the rest of its session comes from the call itself. */
export interface CallContext
  extends Pick<Session, 'host' | 'config' | 'mayHang' | 'isAlive' | 'limitSilence' | 'givenUp'> {
  log: CallLog
  /** What is wrong with the node's configuration: a mount is refused then, an unmount is not. */
  configFaults: readonly string[]
  /** Is told how far a walk is, beside the log. */
  progress?(counts: WalkCounts): void
  /** The same of the walk of another call that this one waits for. */
  waits?(counts: WalkCounts): void
  /** A program that gets secrets leaves no core. */
  forbidCoreDumps(): void
}

/** What a call works with. @param options mount's options argument, whose secrets are decoded for the kinds that use them */
export function createSession(process: CallContext, options = '{}'): Session {
  const { host, config, mayHang, isAlive, limitSilence, givenUp, log, progress, waits } = process
  return {
    ...(waits && { waits }),
    host,
    config,
    mayHang,
    ...(isAlive && { isAlive: () => isAlive() }),
    ...(limitSilence && { limitSilence }),
    givenUp,
    get secrets() {
      return readSecrets(options)
    },
    progress(counts) {
      log.progress({ ...counts })
      progress?.(counts)
    },
    note: (facts) => log.note(facts),
    warn: (message) => log.warn(message),
  }
}

/** Reads mount's options argument, for the call's log line too. @throws {Refusal} with every fault of the call */
export function readMountRequest(
  session: Session,
  { directory, options }: MountArguments,
  process: CallContext,
): MountRequest {
  if (options.includes(SECRET_PREFIX)) process.forbidCoreDumps()
  const request = readRequest(directory, options, session.config, kinds)
  session.note({ pod: request.pod, source: formatSource(request.source) })
  return request
}

/** For each line of a call: also one that is refused for its options, or for the node's configuration, is a pod's. */
export function notePod(log: CallLog, options: string): void {
  log.note({ pod: findPodName(options) })
}

/** Runs `mount` or `unmount` and logs it: one line, and one for each warning. Never throws. */
export async function answerVolumeCall(call: VolumeCall, process: CallContext): Promise<FlexVolumeReply> {
  const { log, configFaults } = process
  if (call.verb === 'mount') notePod(log, call.options)
  for (const fault of configFaults) log.warn(fault)
  const session = createSession(process, call.verb === 'mount' ? call.options : undefined)
  try {
    const message =
      call.verb === 'mount'
        ? await runMount(session, call, process)
        : await (await import('../mount/unmount.ts')).unmount(session, call.directory)
    log.end('Success')
    return message ? { status: 'Success', message: printable(message) } : { status: 'Success' }
  } catch (error) {
    log.end('Failure', error)
    return createFailureReply(error)
  }
}

/** Reports what modekeep chose, which group it did not apply, what it skipped and hid: a Success hides no number. */
function formatMountMessage({ ownership }: MountRequest, given: MountResult): string | undefined {
  const isWorthIt = given.why !== undefined && (ownership === 'auto' || given.by === 'none')
  const chosen = isWorthIt ? `ownership ${given.by}: ${given.why}` : undefined
  const skipped = given.by === 'walk' ? given.skipped : undefined
  const message = [chosen, skipped, given.hiddenSubmounts].filter((part) => part !== undefined).join('; ')
  return message === '' ? undefined : message
}

/** @returns what modekeep chose where the pod's author left it the choice */
async function runMount(session: Session, call: MountArguments, process: CallContext): Promise<string | undefined> {
  if (process.configFaults.length > 0) throw new Refusal(process.configFaults)
  const request = readMountRequest(session, call, process)
  refuseGivenUp(session, request.directory)
  return formatMountMessage(request, await mountAnywhere(session, request))
}
