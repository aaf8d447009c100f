import { formatError, Refusal } from '../errors/refusal.ts'
import { truncateMessage } from '../flexvolume/reply.ts'
import { type CallContext, createSession, notePod, readMountRequest } from '../flexvolume/volume-call.ts'
import { refuseGivenUp } from '../fs-group/given-up-call.ts'
import type { CallLog } from '../log/call-log.ts'
import { DamagedRecord } from '../store/record.ts'
import { publish } from './publish.ts'
import { readStats } from './stats.ts'
import { unpublish } from './unpublish.ts'
import { CallFailure, type CsiTask, type CsiTaskOutcome, type FailureCode } from './worker-tasks.ts'

/** Runs a task. Logs one line for it and one for each warning, as for FlexVolume's calls. Never throws. */
export async function runCsiTask(task: CsiTask, context: CallContext): Promise<CsiTaskOutcome> {
  const { log } = context
  try {
    if (task.do === 'stats') return { stats: await readStats(createSession(context), task.directory) }
    if (task.do === 'publish') notePod(log, task.options)
    for (const fault of context.configFaults) log.warn(fault)
    if (task.do === 'publish') await runPublish(task, context)
    else {
      await unpublish(createSession(context), task.directory, task.driver)
      log.end('Success')
    }
    return {}
  } catch (error) {
    // Kubelet may request stats of a pod that is being deleted.
    if (!(task.do === 'stats' && error instanceof CallFailure)) log.end('Failure', error)
    return { failure: { code: findFailureCode(error), message: formatMessage(error) } }
  }
}

async function runPublish(task: Extract<CsiTask, { do: 'publish' }>, context: CallContext): Promise<void> {
  if (context.configFaults.length > 0) throw new Refusal(context.configFaults)
  let isRepeat = false
  const note: CallLog['note'] = (facts) => {
    if ('decision' in facts) isRepeat = facts.decision === 'ready'
    context.log.note(facts)
  }
  const session = createSession({ ...context, log: { ...context.log, note } }, task.options)
  const request = readAsInvalid(() => readMountRequest(session, task, context))
  refuseGivenUp(session, request.directory)
  const publication = { volumeId: task.volumeId, isSingleWriter: task.isSingleWriter === true }
  await publish(session, { ...request, lifecycle: task.lifecycle, publication })
  // Kubelet repeats each call about once a minute. Logging each repetition would rotate all other lines out of the log.
  if (!isRepeat) context.log.end('Success')
}

/** Marks refusals of the author's options, which are no fault of the node or its configuration. */
function readAsInvalid<T>(read: () => T): T {
  try {
    return read()
  } catch (error) {
    throw error instanceof Refusal ? new InvalidRequest(error) : error
  }
}

class InvalidRequest extends Refusal {
  constructor({ faults }: Refusal) {
    super(faults)
  }
}

function findFailureCode(error: unknown): FailureCode {
  if (error instanceof CallFailure) return error.code
  if (error instanceof InvalidRequest) return 'INVALID_ARGUMENT'
  return error instanceof Refusal && !(error instanceof DamagedRecord) ? 'FAILED_PRECONDITION' : 'INTERNAL'
}

/** Replaces FlexVolume's terms in a message: CSI calls options volumeAttributes, and names the secret by another field. */
function translateToCsi(message: string): string {
  return message
    .replaceAll(/\boption "(?!kubernetes\.io\/)/g, 'volumeAttributes "')
    .replaceAll(/(?<![\w.])"?secretRef"?(?![\w.])/g, 'nodePublishSecretRef')
}

function formatMessage(error: unknown): string {
  if (error instanceof Refusal) return truncateMessage(translateToCsi(error.message))
  if (error instanceof CallFailure) return truncateMessage(error.message)
  return `modekeep failed: ${truncateMessage(formatError(error))}; see its log on the node`
}
