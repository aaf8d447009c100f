import type { CsiLifecycle } from '../../config/rule.ts'
import { type Fault, formatFaultCode, renderFault } from '../../errors/fault.ts'
import { quoteValue } from '../../errors/refusal.ts'
import type { SpaceUsage } from '../../kernel/inodes.ts'
import type { WalkCounts } from '../../ownership/walk/report.ts'
import type { GivenUpProcess } from '../../state/session.ts'
import {
  createGivenUpProcessFault,
  createTooManyUnkillableWorkersFault,
  createUnkillableProcessFault,
  MAX_UNKILLABLE_WORKERS,
} from '../../worker/given-up.ts'
import type { LostTaskOutcomes, WorkerLimits } from '../../worker/schedule.ts'
import type { WorkerSupervision } from '../../worker/supervision.ts'

/** A volume to publish. Keys are sorted, so that a repeated call is recognized. */
export interface VolumePublication {
  volumeId: string
  directory: string
  /** Options by the keys of the pod's author and of kubelet (`volumeOptionsSchema`). */
  options: Readonly<Record<string, string>>
  secrets: Readonly<Record<string, string>>
  lifecycle: CsiLifecycle
  /** The access mode allows only one target. */
  isSingleWriter?: true
}

/** A task of a worker process, sent as a line of JSON. */
export type CsiTask = (
  | ({ do: 'publish' } & VolumePublication)
  | { do: 'unpublish'; volumeId: string; directory: string; driver?: string }
  | { do: 'stats'; volumeId: string; directory: string }
) & {
  /** The killed worker that had this task before. */
  givenUp?: GivenUpProcess
}

/** The tasks' verbs in the log, which are those of the FlexVolume calls that do the same, and their names in messages. */
export const CSI_TASK_WORDS = {
  publish: { verb: 'mount', activity: 'mounting' },
  unpublish: { verb: 'unmount', activity: 'unmounting' },
  stats: { verb: 'stats', activity: 'reading the usage' },
} as const

/** gRPC status codes of failed calls. */
export type CsiFailureCode =
  | 'INVALID_ARGUMENT'
  | 'NOT_FOUND'
  | 'ALREADY_EXISTS'
  | 'FAILED_PRECONDITION'
  | 'ABORTED'
  | 'INTERNAL'

export interface CsiTaskFailure {
  code: CsiFailureCode
  /** Text of the pod's event. */
  message: string
}

/** Usage and condition of a published volume. JSON has no bigint, so its numbers are strings. */
export interface VolumeStats {
  /** Undefined if the file system does not report its usage. */
  space: Record<'bytes' | 'inodes', Record<keyof SpaceUsage, string>> | undefined
  /** Description of the volume's fault; '' if it has none. */
  trouble: string
}

/** Outcome of a task. A failure is reported to kubelet and in the pod's events. */
export type CsiTaskOutcome = { failure?: undefined; stats?: VolumeStats } | { failure: CsiTaskFailure }

/** Progress of a walk, about once a second. With `isAnothers` it is the walk of another call that the task waits for. */
export type CsiTaskProgress = WalkCounts & { isAnothers?: true }

/** The result of a lost task is unknown. Kubelet treats ABORTED as an uncertain result and repeats the call. */
export const LOST_CSI_TASK_OUTCOMES: LostTaskOutcomes<CsiTaskOutcome> = {
  notStarted: {
    failure: { code: 'ABORTED', message: `it was given up before it began${formatFaultCode('in-progress')}` },
  },
  createExited(how) {
    const message = `the process that was at work on it ${how}: the next call finishes what it began${formatFaultCode('worker-failed')}`
    return { failure: { code: 'ABORTED', message } }
  },
}

export const CSI_WORKER_LIMITS: WorkerLimits = {
  maxQuick: 4,
  longAfterMs: 5000,
  maxPerKind: 16,
  maxPerNamespace: 8,
  minIdle: 0,
  // The first publication after a start does not wait for a process.
  startedAhead: 1,
  growAfterMs: 300,
}

/** @param patienceMs time without a report after which a worker is killed */
export function createCsiTaskSupervision(patienceMs: number): WorkerSupervision<CsiTask, CsiTaskOutcome> {
  return {
    patienceMs,
    // The second worker accesses no volume. If it is unresponsive too, kubelet repeats the call.
    retry: (task, givenUp) => (task.givenUp === undefined && task.do !== 'stats' ? { ...task, givenUp } : undefined),
    createOutcome: (task, unresponsive) =>
      task.do === 'stats' ? createUnknownStatsOutcome(createGivenUpProcessFault(unresponsive)) : undefined,
    findOwner: (task) => (task.do === 'stats' ? task.directory : undefined),
    maxLeft: MAX_UNKILLABLE_WORKERS,
    refuseTooManyLeft(namespace, pids, task) {
      if (task.do === 'stats') return createUnknownStatsOutcome(createUnkillableProcessFault(pids[0]))
      const fault = createTooManyUnkillableWorkersFault(`namespace ${namespace}`, pids)
      return {
        failure: { code: 'FAILED_PRECONDITION', message: `${renderFault(fault)}${formatFaultCode(fault.code)}` },
      }
    },
  }
}

/** Creates the answer of a stats call that could not access the volume. */
function createUnknownStatsOutcome(fault: Fault): CsiTaskOutcome {
  return { stats: { space: undefined, trouble: `unknown: ${renderFault(fault)}` } }
}

/** A failure with a status code of its own. */
export class CsiCallFailure extends Error {
  readonly code: CsiFailureCode

  constructor(code: CsiFailureCode, message: string) {
    super(message)
    this.code = code
  }
}

/** Creates the failure of a stats call for a volume that modekeep has not mounted there. */
export function createNotPublishedFailure(path: string): CsiCallFailure {
  return new CsiCallFailure('NOT_FOUND', `nothing is published at ${quoteValue(path)}`)
}
