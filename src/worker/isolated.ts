import type { NodeConfig } from '../config/defaults.ts'
import type { PodSecrets } from '../config/json-options.ts'
import type { FaultCode } from '../errors/entries/index.ts'
import type { Fault } from '../errors/fault.ts'
import { Refusal, UnknownFormatRefusal } from '../errors/refusal.ts'
import { deferHandleClose, type Handle } from '../kernel/host.ts'
import { FairSemaphore } from '../kernel/waiting.ts'
import { UnkillableProcesses } from '../kernel/worker-process.ts'
import type { WalkCounts } from '../ownership/walk/report.ts'
import type { Session } from '../state/session.ts'
import { computeSilenceLimitMs, createTooManyUnkillableWorkersFault, MAX_UNKILLABLE_WORKERS } from './given-up.ts'

/** A server, a daemon or a disk does not respond, so isolated work was given up or not started. */
export class UnresponsiveRefusal extends Refusal {}

/** Request to the worker process: one line of JSON. It contains secrets, so it is passed only on stdin. */
export interface IsolatedWorkRequest {
  work: string
  about: unknown
  config: NodeConfig
  /** Values in base64. */
  secrets: readonly (readonly [name: string, value: string])[]
}

export type IsolatedWorkProgress =
  | { note: Record<string, unknown> }
  | { warn: string; code: FaultCode }
  | { counts: WalkCounts }

export type IsolatedWorkOutcome =
  | { done: unknown }
  | { refused: readonly Fault[]; isUnknownFormat: boolean; isUnresponsive: boolean }
  | { failed: string }

export interface IsolatedWork {
  /** Name of the work: see driver/isolated-worker.ts. */
  work: string
  /** Argument of the work; must be serializable as JSON. */
  about: unknown
  /** Directory where the work begins; undefined: the node's root. */
  handle?: Handle
  /** Lock file that the worker holds until it ends. */
  lock?: string
  /** Secrets of the pod that the work needs. */
  secrets?: PodSecrets | undefined
  /** Namespace or directory whose number of given-up workers is limited. Undefined: a lock limits them. */
  owner?: string | undefined
  /** Milliseconds for which the worker may report nothing; undefined: as configured. */
  patienceMs?: number | undefined
  /** Creates the fault of a given-up worker. @param waiting clause that names a worker that still waits, or '' */
  givenUp(seconds: number, waiting: string, pid: number): Fault
}

/**
 * Runs work in a worker process, because it may wait for a server or a daemon indefinitely. A thread that waits so
 * cannot even be killed, and would block this process and its locks. The session gets the worker's notes, warnings and
 * progress.
 * @throws {UnresponsiveRefusal} if the worker was given up; otherwise an error with the message of the worker's error
 */
export async function runIsolatedWork<T>(
  session: Session,
  isolated: IsolatedWork,
  progress = session.progress,
): Promise<T> {
  const { host, config } = session
  const { work, about, lock, secrets = new Map(), owner, givenUp } = isolated
  const earlier = owner === undefined ? [] : unkillableWorkers.of(owner)
  if (owner !== undefined && earlier.length >= MAX_UNKILLABLE_WORKERS)
    throw new UnresponsiveRefusal(createTooManyUnkillableWorkersFault(owner, earlier))
  using _turn = await isolatedWorkerTurns.take()
  const patienceMs = isolated.patienceMs ?? computeSilenceLimitMs(config)
  const request: IsolatedWorkRequest = { work, about, config, secrets: [...secrets].map(encodeSecret) }
  let outcome: IsolatedWorkOutcome | undefined
  const root = isolated.handle === undefined ? host.inodes.openTrusted('/') : undefined
  using _root = deferHandleClose(host.inodes, root)
  const { isSilent, leftBehind, pid, ended } = await host.callWorker({
    task: JSON.stringify(request),
    handle: isolated.handle ?? (root as Handle),
    lock,
    patienceMs,
    onReport(report) {
      if ('outcome' in report) outcome = report.outcome as IsolatedWorkOutcome
      if (!('progress' in report)) return
      const reported = report.progress as IsolatedWorkProgress
      if ('note' in reported) session.note(reported.note)
      else if ('warn' in reported) session.warn(reported.warn, reported.code)
      else progress?.(reported.counts)
    },
  })
  if (leftBehind !== undefined && owner !== undefined) unkillableWorkers.add(leftBehind, owner, ended)
  if (isSilent) {
    const waiting = leftBehind === undefined ? '' : `; until then process ${leftBehind} waits for it`
    throw new UnresponsiveRefusal(givenUp(patienceMs / 1000, waiting, pid))
  }
  return readIsolatedOutcome(outcome) as T
}

/** The isolated process ended without a result, as by SIGKILL: a repeated call does its work. */
export class WorkerCrashedError extends Error {}

/** Each worker is a process of some 90 MB. A worker has its turn until its caller stops waiting for it. */
const isolatedWorkerTurns = new FairSemaphore(8)
const unkillableWorkers = new UnkillableProcesses()

function encodeSecret([name, value]: [string, Uint8Array]): [string, string] {
  return [name, Buffer.from(value).toString('base64')]
}

function readIsolatedOutcome(outcome: IsolatedWorkOutcome | undefined): unknown {
  if (outcome === undefined)
    throw new WorkerCrashedError('the process that worked for this call, as a server may hang, has crashed')
  if ('done' in outcome) return outcome.done
  if ('failed' in outcome) throw new Error(outcome.failed)
  if (outcome.isUnresponsive) throw new UnresponsiveRefusal(outcome.refused)
  throw outcome.isUnknownFormat ? new UnknownFormatRefusal(outcome.refused) : new Refusal(outcome.refused)
}
