import { truncateMessage } from '../flexvolume/reply.ts'
import { type CallContext, createSession, notePod, readMountRequest } from '../flexvolume/volume-call.ts'
import { refuseGivenUp } from '../fs-group/given-up-call.ts'
import type { CallLog } from '../log/call-log.ts'
import { messageOf, Refusal } from '../refusal/refusal.ts'
import { DamagedRecord } from '../store/record.ts'
import { publish } from './publish.ts'
import { readStats } from './stats.ts'
import { unpublish } from './unpublish.ts'
import { CallFailure, type CsiTask, type CsiTaskOutcome, type FailureCode } from './worker-tasks.ts'

/** Does a job and logs it, as FlexVolume's calls are: one line, and one for each warning. Never throws. */
export async function runCsiTask(job: CsiTask, process: CallContext): Promise<CsiTaskOutcome> {
  const { log } = process
  try {
    if (job.do === 'stats') return { stats: await readStats(createSession(process), job.directory) }
    if (job.do === 'publish') notePod(log, job.options)
    for (const fault of process.configFaults) log.warn(fault)
    if (job.do === 'publish') await runPublish(job, process)
    else {
      await unpublish(createSession(process), job.directory, job.driver)
      log.end('Success')
    }
    return {}
  } catch (error) {
    // Kubelet may ask for the volume of a pod that is just going.
    if (!(job.do === 'stats' && error instanceof CallFailure)) log.end('Failure', error)
    return { failure: { code: findFailureCode(error), message: formatMessage(error) } }
  }
}

async function runPublish(job: Extract<CsiTask, { do: 'publish' }>, process: CallContext): Promise<void> {
  if (process.configFaults.length > 0) throw new Refusal(process.configFaults)
  let isRepeat = false
  const note: CallLog['note'] = (facts) => {
    if ('decision' in facts) isRepeat = facts.decision === 'ready'
    process.log.note(facts)
  }
  const session = createSession({ ...process, log: { ...process.log, note } }, job.options)
  const request = readAsInvalid(() => readMountRequest(session, job, process))
  refuseGivenUp(session, request.directory)
  const publication = { volumeId: job.volumeId, isSingleWriter: job.isSingleWriter === true }
  await publish(session, { ...request, lifecycle: job.lifecycle, publication })
  // Kubelet repeats each call about once a minute: a line each time would drive all others out of the log.
  if (!isRepeat) process.log.end('Success')
}

/** What the author wrote is at fault, not what the node allows or has. */
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

/** What the engine calls options the pod's author wrote as volumeAttributes, and names a secret by another field. */
function translateToCsi(message: string): string {
  return message
    .replaceAll(/\boption "(?!kubernetes\.io\/)/g, 'volumeAttributes "')
    .replaceAll(/(?<![\w.])"?secretRef"?(?![\w.])/g, 'nodePublishSecretRef')
}

function formatMessage(error: unknown): string {
  if (error instanceof Refusal) return truncateMessage(translateToCsi(error.message))
  if (error instanceof CallFailure) return truncateMessage(error.message)
  return `modekeep failed: ${truncateMessage(messageOf(error))}; see its log on the node`
}
