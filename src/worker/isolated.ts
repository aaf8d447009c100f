import type { NodeConfig } from '../config/defaults.ts'
import type { Secrets } from '../config/json-options.ts'
import type { FaultCode } from '../errors/entries/index.ts'
import type { Fault } from '../errors/fault.ts'
import { Refusal, UnknownFormat } from '../errors/refusal.ts'
import { deferClose, type Handle } from '../kernel/host.ts'
import { FairSemaphore } from '../kernel/waiting.ts'
import { UnkillableProcesses } from '../kernel/worker-process.ts'
import type { WalkCounts } from '../ownership/walk/report.ts'
import type { Session } from '../state/session.ts'
import { computePatienceMs, createTooManyLeftFault, MAX_LEFT } from './given-up.ts'

/** A server, a daemon or a disk does not respond, so isolated work was given up or not started. */
export class Unresponsive extends Refusal {}

/** Request to the worker process: one line of JSON. It contains secrets, so it is passed only on stdin. */
export interface WorkerRequest {
  work: string
  about: unknown
  config: NodeConfig
  /** Values in base64. */
  secrets: readonly (readonly [name: string, value: string])[]
}

export type IsolatedProgress =
  | { note: Record<string, unknown> }
  | { warn: string; code: FaultCode }
  | { counts: WalkCounts }

export type IsolatedOutcome =
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
  secrets?: Secrets | undefined
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
 * @throws {Unresponsive} if the worker was given up; otherwise an error with the message of the worker's error
 */
export async function runIsolated<T>(
  session: Session,
  isolated: IsolatedWork,
  progress = session.progress,
): Promise<T> {
  const { host, config } = session
  const { work, about, lock, secrets = new Map(), owner, givenUp } = isolated
  const earlier = owner === undefined ? [] : unkillable.of(owner)
  if (owner !== undefined && earlier.length >= MAX_LEFT) throw new Unresponsive(createTooManyLeftFault(owner, earlier))
  using _turn = await turns.take()
  const patienceMs = isolated.patienceMs ?? computePatienceMs(config)
  const request: WorkerRequest = { work, about, config, secrets: [...secrets].map(encodeSecret) }
  let outcome: IsolatedOutcome | undefined
  const root = isolated.handle === undefined ? host.inodes.openTrusted('/') : undefined
  using _root = deferClose(host.inodes, root)
  const { isSilent, leftBehind, pid, ended } = await host.callWorker({
    task: JSON.stringify(request),
    handle: isolated.handle ?? (root as Handle),
    lock,
    patienceMs,
    onReport(report) {
      if ('outcome' in report) outcome = report.outcome as IsolatedOutcome
      if (!('progress' in report)) return
      const reported = report.progress as IsolatedProgress
      if ('note' in reported) session.note(reported.note)
      else if ('warn' in reported) session.warn(reported.warn, reported.code)
      else progress?.(reported.counts)
    },
  })
  if (leftBehind !== undefined && owner !== undefined) unkillable.add(leftBehind, owner, ended)
  if (isSilent) {
    const waiting = leftBehind === undefined ? '' : `; until then process ${leftBehind} waits for it`
    throw new Unresponsive(givenUp(patienceMs / 1000, waiting, pid))
  }
  return readOutcome(outcome) as T
}

/** The isolated process ended without a result, as by SIGKILL: a repeated call does its work. */
export class WorkerCrashed extends Error {}

/** Each worker is a process of some 90 MB. A worker has its turn until its caller stops waiting for it. */
const turns = new FairSemaphore(8)
const unkillable = new UnkillableProcesses()

function encodeSecret([name, value]: [string, Uint8Array]): [string, string] {
  return [name, Buffer.from(value).toString('base64')]
}

function readOutcome(outcome: IsolatedOutcome | undefined): unknown {
  if (outcome === undefined)
    throw new WorkerCrashed('the process that worked for this call, as a server may hang, has crashed')
  if ('done' in outcome) return outcome.done
  if ('failed' in outcome) throw new Error(outcome.failed)
  if (outcome.isUnresponsive) throw new Unresponsive(outcome.refused)
  throw outcome.isUnknownFormat ? new UnknownFormat(outcome.refused) : new Refusal(outcome.refused)
}
