import { deferClose, type Handle, type Host } from '../host/host.ts'
import { FairSemaphore } from '../host/semaphore.ts'
import { UnkillableProcesses } from '../host/unkillable-processes.ts'
import type { WalkCounts } from '../ownership/walk/report.ts'
import { formatError, Refusal, UnknownFormat } from '../refusal/refusal.ts'
import type { NodeConfig } from '../request/defaults.ts'
import type { Secrets } from '../request/json-options.ts'
import { formatTooManyLeft, MAX_LEFT, patienceMs } from './given-up.ts'
import type { Session } from './session.ts'

/** A server, a daemon or a disk does not respond, so isolated work was given up or not started. */
export class Unresponsive extends Refusal {}

/** Request to the worker process: one line of JSON. It contains secrets, so it is passed only on stdin. */
interface Told {
  work: string
  about: unknown
  config: NodeConfig
  /** Values in base64. */
  secrets: readonly (readonly [name: string, value: string])[]
}

/** One line of the worker's output. An empty line is a heartbeat; the last line is the outcome. */
type Said =
  | { note: Record<string, unknown> }
  | { warn: string }
  | { counts: WalkCounts }
  | { done: unknown }
  | { refused: readonly string[]; isUnknownFormat: boolean; isUnresponsive: boolean }
  | { failed: string }

export interface Elsewhere {
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
export async function doElsewhere<T>(session: Session, elsewhere: Elsewhere, progress = session.progress): Promise<T> {
  const { host, config } = session
  const { work, about, lock, secrets = new Map(), owner, givenUp } = elsewhere
  const former = owner === undefined ? [] : left.of(owner)
  if (owner !== undefined && former.length >= MAX_LEFT) throw new Unresponsive(formatTooManyLeft(owner, former))
  using _turn = await turns.take()
  const patience = elsewhere.patienceMs ?? patienceMs(config)
  const told: Told = { work, about, config, secrets: [...secrets].map(inBase64) }
  let last: Said | undefined
  const root = elsewhere.handle === undefined ? host.inodes.openTrusted('/') : undefined
  using _root = deferClose(host.inodes, root)
  const { isSilent, leftBehind, pid, ended } = await host.runErrand({
    order: JSON.stringify(told),
    handle: elsewhere.handle ?? (root as Handle),
    lock,
    patience,
    told(line) {
      const said = JSON.parse(line) as Said
      if ('note' in said) session.note(said.note)
      else if ('warn' in said) session.warn(said.warn)
      else if ('counts' in said) progress?.(said.counts)
      else last = said
    },
  })
  if (leftBehind !== undefined && owner !== undefined) left.add(leftBehind, owner, ended)
  if (isSilent) {
    const waiting = leftBehind === undefined ? '' : `; until then process ${leftBehind} waits for it`
    throw new Unresponsive(givenUp(patience / 1000, waiting, pid))
  }
  return outcomeOf(last) as T
}

/** The isolated process ended without a result, as by SIGKILL: a repeated call does its work. */
export class WorkerCrashed extends Error {}

/** Each worker is a process of some 90 MB. A worker has its turn until its caller stops waiting for it. */
const turns = new FairSemaphore(8)
const left = new UnkillableProcesses()

function inBase64([name, value]: [string, Uint8Array]): [string, string] {
  return [name, Buffer.from(value).toString('base64')]
}

function outcomeOf(last: Said | undefined): unknown {
  if (last !== undefined && 'done' in last) return last.done
  if (last !== undefined && 'refused' in last) {
    if (last.isUnresponsive) throw new Unresponsive(last.refused)
    throw last.isUnknownFormat ? new UnknownFormat(last.refused) : new Refusal(last.refused)
  }
  if (last !== undefined && 'failed' in last) throw new Error(last.failed)
  throw new WorkerCrashed('the process that worked for this call, as a server may hang, has crashed')
}

/** @returns a value that is serializable as JSON */
export type Work = (session: Session, handle: Handle, about: never) => Promise<unknown>

const PULSE_MS = 500

/** Small, so that the worker reports often even if a server is slow to answer each request. */
const SMALL_BATCH = 32

/**
 * Runs the requested work in the worker process, and reports to the caller.
 * @param told the request, one line of JSON
 * @param say writes a line to the caller
 */
export async function workForCaller(
  host: Host,
  handle: Handle,
  told: string,
  say: (line: string) => void,
  workOf: (name: string) => Promise<Work>,
): Promise<void> {
  const tell = (said: Said) => say(JSON.stringify(said))
  let said = performance.now()
  const isAlive = () => {
    if (performance.now() - said < PULSE_MS) return
    said = performance.now()
    say('')
  }
  const pulse = setInterval(isAlive, PULSE_MS)
  try {
    const { work, about, config, secrets } = JSON.parse(told) as Told
    const session: Session = {
      host,
      config,
      mayHang: true,
      isAlive,
      largestBatch: SMALL_BATCH,
      secrets: fromBase64(secrets),
      note: (note) => tell({ note }),
      warn: (warn) => tell({ warn }),
      progress: (counts) => tell({ counts }),
    }
    const done = await (await workOf(work))(session, handle, about as never)
    tell({ done: done ?? null })
  } catch (error) {
    tell(failureOf(error))
  } finally {
    clearInterval(pulse)
  }
}

function failureOf(error: unknown): Said {
  if (!(error instanceof Refusal)) return { failed: formatError(error) }
  const [isUnknownFormat, isUnresponsive] = [error instanceof UnknownFormat, error instanceof Unresponsive]
  return { refused: error.faults, isUnknownFormat, isUnresponsive }
}

function fromBase64(secrets: Told['secrets']): Secrets {
  return new Map(secrets.map(([name, value]) => [name, Buffer.from(value, 'base64')]))
}
