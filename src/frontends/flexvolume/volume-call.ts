import { decodePodSecrets, type PodSecrets, parseOptionsJson, SECRET_KEY_PREFIX } from '../../config/json-options.ts'
import type { MountRequest } from '../../config/mount-request.ts'
import { findPodName, parseFlexVolumeRequest } from '../../config/request.ts'
import { formatSource } from '../../config/source.ts'
import { escapeUnprintable } from '../../errors/escape.ts'
import { type Fault, renderFault } from '../../errors/fault.ts'
import { Refusal } from '../../errors/refusal.ts'
import type { CallLog } from '../../log/call-log.ts'
import { type MountResult, mountPodVolumeIsolated } from '../../mount/mount.ts'
import type { WalkCounts } from '../../ownership/walk/report.ts'
import type { Session } from '../../state/session.ts'
import { volumeKindLookup } from '../../volume/index.ts'
import { refuseGivenUpMount } from '../../worker/given-up.ts'
import { createFailureReply, type FlexVolumeCall, type FlexVolumeReply } from './protocol.ts'

export type VolumeCall = Extract<FlexVolumeCall, { verb: 'mount' | 'unmount' }>
type MountCallArguments = Pick<Extract<FlexVolumeCall, { verb: 'mount' }>, 'directory' | 'options'>

/** Part of a call's session that the process provides. */
export interface VolumeCallContext
  extends Pick<Session, 'host' | 'config' | 'mayHang' | 'endsWithCall' | 'isAlive' | 'limitSilence' | 'givenUp'> {
  log: CallLog
  /** Faults of the node's configuration. A mount is refused for them, an unmount is not. */
  configFaults: readonly Fault[]
  /** Gets a walk's progress, in addition to the log. */
  progress?(counts: WalkCounts): void
  /** Gets the progress of another call's walk that this call waits for. */
  waits?(counts: WalkCounts): void
  /** Is called before secrets are read, so that no core dump contains them. */
  forbidCoreDumps(): void
}

/** Creates the session of a call. @param decodeSecrets is called when the secrets are used */
export function createCallSession(
  context: VolumeCallContext,
  decodeSecrets: () => PodSecrets = () => new Map(),
): Session {
  const { host, config, mayHang, endsWithCall, isAlive, limitSilence, givenUp, log, progress, waits } = context
  return {
    ...(waits && { waits }),
    host,
    config,
    mayHang,
    ...(endsWithCall && { endsWithCall }),
    ...(isAlive && { isAlive: () => isAlive() }),
    ...(limitSilence && { limitSilence }),
    givenUp,
    get secrets() {
      return decodeSecrets()
    },
    progress(counts) {
      log.progress({ ...counts })
      progress?.(counts)
    },
    note: (facts) => log.note(facts),
    warn: log.warn,
  }
}

/** Notes the pod for the log line, so that it is named even if the options or the node's configuration are invalid. */
function notePodInLog(log: CallLog, options: string): void {
  try {
    log.note({ pod: findPodName(parseOptionsJson(options).entries) })
  } catch {
    // The mount is refused for it.
    log.note({ pod: undefined })
  }
}

/** Runs `mount` or `unmount`. Logs one line for the call and one for each warning. Never throws. */
export async function answerVolumeCall(call: VolumeCall, context: VolumeCallContext): Promise<FlexVolumeReply> {
  const { log, configFaults } = context
  if (call.verb === 'mount') notePodInLog(log, call.options)
  for (const fault of configFaults) log.warn(renderFault(fault), fault.code)
  try {
    const message =
      call.verb === 'mount'
        ? await runMountCall(call, context)
        : await (await import('../../mount/unmount.ts')).unmountPodVolume(createCallSession(context), call.directory)
    log.end('Success')
    return message ? { status: 'Success', message: escapeUnprintable(message) } : { status: 'Success' }
  } catch (error) {
    log.end('Failure', error)
    return createFailureReply(error)
  }
}

/** Formats the method that modekeep chose, a group that it did not apply, and what it skipped or hid. */
function formatMountReplyMessage({ ownership }: MountRequest, result: MountResult): string | undefined {
  const isWorthIt = result.why !== undefined && (ownership === 'auto' || result.by === 'none')
  const chosen = isWorthIt ? `ownership ${result.by}: ${result.why}` : undefined
  const skipped = result.by === 'walk' ? result.skipped : undefined
  const message = [chosen, skipped, result.hiddenSubmounts].filter((part) => part !== undefined).join('; ')
  return message === '' ? undefined : message
}

/** @returns the message of the reply */
async function runMountCall(
  { directory, options }: MountCallArguments,
  context: VolumeCallContext,
): Promise<string | undefined> {
  if (context.configFaults.length > 0) throw new Refusal(context.configFaults)
  if (options.includes(SECRET_KEY_PREFIX)) context.forbidCoreDumps()
  const session = createCallSession(context, () => decodePodSecrets(options))
  const request = parseFlexVolumeRequest(directory, options, session.config, volumeKindLookup)
  session.note({ pod: request.pod, source: formatSource(request.source) })
  refuseGivenUpMount(session, directory)
  return formatMountReplyMessage(request, await mountPodVolumeIsolated(session, request))
}
