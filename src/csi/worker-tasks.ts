import type { Space } from '../host/inodes.ts'
import type { WalkCounts } from '../ownership/walk/report.ts'
import { quoted } from '../refusal/refusal.ts'
import type { Lifecycle } from '../request/rule.ts'
import { formatGivenUp, formatLeftProcess, MAX_LEFT } from '../store/given-up.ts'
import type { GivenUpProcess } from '../store/given-up-process.ts'
import type { WorkerLimits } from '../worker-pool/schedule.ts'
import { formatLeft, type Supervision } from '../worker-pool/supervision.ts'
import type { LostTaskOutcomes } from '../worker-pool/workers.ts'

/** How the executable is called as a worker: by the server alone, which hands jobs to its stdin. */
export const CSI_WORKER_VERB = 'csi-worker'

/** What a worker does, one after the other; a line of JSON each. */
export type CsiTask = (
  | { do: 'publish'; volumeId: string; directory: string; options: string; lifecycle: Lifecycle; isSingleWriter?: true }
  | { do: 'unpublish'; volumeId: string; directory: string; driver?: string }
  | { do: 'stats'; volumeId: string; directory: string }
) & {
  /** A worker that had this job before and was killed. */
  givenUp?: GivenUpProcess
}

/** Of gRPC's codes, by name, those that calls are answered with. */
export type FailureCode =
  | 'INVALID_ARGUMENT'
  | 'NOT_FOUND'
  | 'ALREADY_EXISTS'
  | 'FAILED_PRECONDITION'
  | 'ABORTED'
  | 'INTERNAL'

export interface TaskFailure {
  code: FailureCode
  /** What the pod's event shows. */
  message: string
}

/** What there is to say of a published volume. In JSON its numbers are texts. */
export interface VolumeStats {
  /** Undefined where nobody says. */
  space: Record<'bytes' | 'inodes', Record<keyof Space, string>> | undefined
  /** In words, what is not well; '' where all is. */
  trouble: string
}

/** Of a failure kubelet and the pod's author hear. */
export type CsiTaskOutcome = { failure?: undefined; stats?: VolumeStats } | { failure: TaskFailure }

/** How far a walk is, told about once a second: of the job, or of another call that it waits for. */
export type CsiTaskProgress = WalkCounts & { isAnothers?: true }

/** What was done is not known: kubelet takes ABORTED for "perhaps", and asks again. */
export const LOST_CSI_TASK: LostTaskOutcomes<CsiTaskOutcome> = {
  notStarted: { failure: { code: 'ABORTED', message: 'it was given up before it began' } },
  createExited(how) {
    const message = `the process that was at work on it ${how}: the next call finishes what it began`
    return { failure: { code: 'ABORTED', message } }
  },
}

export const CSI_WORKER_LIMITS: WorkerLimits = {
  maxQuick: 4,
  longAfterMs: 5000,
  maxPerKind: 16,
  maxPerNamespace: 8,
  minIdle: 0,
}

/** @param patienceMs for which a worker may report nothing */
export function superviseCsiTasks(patienceMs: number): Supervision<CsiTask, CsiTaskOutcome> {
  return {
    patienceMs,
    // The second worker accesses no volume. If it reports nothing either, kubelet repeats the call.
    retry: (job, givenUp) => (job.givenUp === undefined && job.do !== 'stats' ? { ...job, givenUp } : undefined),
    createOutcome: (job, silent) => (job.do === 'stats' ? createUnknownStats(formatGivenUp(silent)) : undefined),
    findOwner: (job) => (job.do === 'stats' ? job.directory : undefined),
    maxLeft: MAX_LEFT,
    refuseTooManyLeft(namespace, pids, job) {
      if (job.do === 'stats') return createUnknownStats(formatLeftProcess(pids[0]))
      return { failure: { code: 'FAILED_PRECONDITION', message: formatLeft(namespace, pids) } }
    },
  }
}

/** The volume itself is not accessed. */
function createUnknownStats(reason: string): CsiTaskOutcome {
  return { stats: { space: undefined, trouble: `unknown: ${reason}` } }
}

/** A failure of a code of its own. */
export class CallFailure extends Error {
  readonly code: FailureCode

  constructor(code: FailureCode, message: string) {
    super(message)
    this.code = code
  }
}

/** Of a look at a volume that modekeep has not mounted there. */
export function createNotPublished(path: string): CallFailure {
  return new CallFailure('NOT_FOUND', `nothing is published at ${quoted(path)}`)
}
