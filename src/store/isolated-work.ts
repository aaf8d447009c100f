import { formatError, Refusal, UnknownFormat } from '../errors/refusal.ts'
import { deferClose, type Handle, type Host } from '../host/host.ts'
import { FairSemaphore } from '../host/semaphore.ts'
import { UnkillableProcesses } from '../host/unkillable-processes.ts'
import type { WalkCounts } from '../ownership/walk/report.ts'
import type { NodeConfig } from '../request/defaults.ts'
import type { Secrets } from '../request/json-options.ts'
import { computePatienceMs, formatTooManyLeft, MAX_LEFT } from './given-up-walks.ts'
import type { Session } from './session.ts'

/** A server, a daemon or a disk does not respond, so isolated work was given up or not started. */
export class Unresponsive extends Refusal {}

/** Request to the worker process: one line of JSON. It contains secrets, so it is passed only on stdin. */
interface WorkerRequest {
  work: string
  about: unknown
  config: NodeConfig
  /** Values in base64. */
  secrets: readonly (readonly [name: string, value: string])[]
}

/** One line of the worker's output. An empty line is a heartbeat; the last line is the outcome. */
type WorkerMessage =
  | { note: Record<string, unknown> }
  | { warn: string }
  | { counts: WalkCounts }
  | { done: unknown }
  | { refused: readonly string[]; isUnknownFormat: boolean; isUnresponsive: boolean }
  | { failed: string }

export interface IsolatedWork {
  /** Name of the work: see driver/errand.ts. */
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
  /** Formats the error of a given-up worker. @param waiting clause that names a worker that still waits, or '' */
  givenUp(seconds: number, waiting: string, pid: number): string
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
  if (owner !== undefined && earlier.length >= MAX_LEFT) throw new Unresponsive(formatTooManyLeft(owner, earlier))
  using _turn = await turns.take()
  const patienceMs = isolated.patienceMs ?? computePatienceMs(config)
  const request: WorkerRequest = { work, about, config, secrets: [...secrets].map(encodeSecret) }
  let last: WorkerMessage | undefined
  const root = isolated.handle === undefined ? host.inodes.openTrusted('/') : undefined
  using _root = deferClose(host.inodes, root)
  const { isSilent, leftBehind, pid, ended } = await host.runErrand({
    order: JSON.stringify(request),
    handle: isolated.handle ?? (root as Handle),
    lock,
    patience: patienceMs,
    told(line) {
      const message = JSON.parse(line) as WorkerMessage
      if ('note' in message) session.note(message.note)
      else if ('warn' in message) session.warn(message.warn)
      else if ('counts' in message) progress?.(message.counts)
      else last = message
    },
  })
  if (leftBehind !== undefined && owner !== undefined) unkillable.add(leftBehind, owner, ended)
  if (isSilent) {
    const waiting = leftBehind === undefined ? '' : `; until then process ${leftBehind} waits for it`
    throw new Unresponsive(givenUp(patienceMs / 1000, waiting, pid))
  }
  return readOutcome(last) as T
}

/** The isolated process ended without a result, as by SIGKILL: a repeated call does its work. */
export class WorkerCrashed extends Error {}

/** Each worker is a process of some 90 MB. A worker has its turn until its caller stops waiting for it. */
const turns = new FairSemaphore(8)
const unkillable = new UnkillableProcesses()

function encodeSecret([name, value]: [string, Uint8Array]): [string, string] {
  return [name, Buffer.from(value).toString('base64')]
}

function readOutcome(last: WorkerMessage | undefined): unknown {
  if (last !== undefined && 'done' in last) return last.done
  if (last !== undefined && 'refused' in last) {
    if (last.isUnresponsive) throw new Unresponsive(last.refused)
    throw last.isUnknownFormat ? new UnknownFormat(last.refused) : new Refusal(last.refused)
  }
  if (last !== undefined && 'failed' in last) throw new Error(last.failed)
  throw new WorkerCrashed('the process that worked for this call, as a server may hang, has crashed')
}

/** @returns a value that is serializable as JSON */
export type WorkFunction = (session: Session, handle: Handle, about: never) => Promise<unknown>

const PULSE_MS = 500

/** Small, so that the worker reports often even if a server is slow to answer each request. */
const SMALL_BATCH = 32

/**
 * Runs the requested work in the worker process, and reports to the caller.
 * @param requestLine the request, one line of JSON
 * @param writeLine writes a line to the caller
 */
export async function runWorkerRequest(
  host: Host,
  handle: Handle,
  requestLine: string,
  writeLine: (line: string) => void,
  loadWork: (name: string) => Promise<WorkFunction>,
): Promise<void> {
  const send = (message: WorkerMessage) => writeLine(JSON.stringify(message))
  let lastReport = performance.now()
  const isAlive = () => {
    if (performance.now() - lastReport < PULSE_MS) return
    lastReport = performance.now()
    writeLine('')
  }
  const pulse = setInterval(isAlive, PULSE_MS)
  try {
    const { work, about, config, secrets } = JSON.parse(requestLine) as WorkerRequest
    const session: Session = {
      host,
      config,
      mayHang: true,
      isAlive,
      largestBatch: SMALL_BATCH,
      secrets: decodeSecrets(secrets),
      note: (note) => send({ note }),
      warn: (warn) => send({ warn }),
      progress: (counts) => send({ counts }),
    }
    const done = await (await loadWork(work))(session, handle, about as never)
    send({ done: done ?? null })
  } catch (error) {
    send(createFailureMessage(error))
  } finally {
    clearInterval(pulse)
  }
}

function createFailureMessage(error: unknown): WorkerMessage {
  if (!(error instanceof Refusal)) return { failed: formatError(error) }
  const [isUnknownFormat, isUnresponsive] = [error instanceof UnknownFormat, error instanceof Unresponsive]
  return { refused: error.faults, isUnknownFormat, isUnresponsive }
}

function decodeSecrets(secrets: WorkerRequest['secrets']): Secrets {
  return new Map(secrets.map(([name, value]) => [name, Buffer.from(value, 'base64')]))
}
