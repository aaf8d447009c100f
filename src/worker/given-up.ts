import type { NodeConfig } from '../config/defaults.ts'
import { createFault, type Fault } from '../errors/fault.ts'
import { quoteValue, Refusal } from '../errors/refusal.ts'
import { mountRecords } from '../state/mount-record.ts'
import { givenUpWalkRecords } from '../state/process-records.ts'
import type { GivenUpProcess, Session } from '../state/session.ts'
import { hasVolumeJournal } from '../state/volume-journal.ts'

/** Fewest milliseconds that a supervisor waits for a report. */
const MIN_SILENCE_LIMIT_MS = 5000
/** Milliseconds for a walk of a volume if another walk of it was given up recently. */
const RETRIED_WALK_SILENCE_LIMIT_MS = 750
/** Milliseconds after which a walk gets the full time again, because a slow disk may need it. */
const RECENT_GIVEN_UP_WALK_MS = 120_000

/** Returns the milliseconds for which a process that works on volumes may report nothing. */
export function computeSilenceLimitMs({ helperTimeoutSeconds }: NodeConfig): number {
  return Math.max(MIN_SILENCE_LIMIT_MS, helperTimeoutSeconds * 1000)
}

/** Records that a walk was given up; one that had only a short time is not recorded. */
export function recordGivenUpWalk(session: Session, volume: string, { pid, seconds }: GivenUpProcess): void {
  if (seconds * 1000 < MIN_SILENCE_LIMIT_MS) return
  givenUpWalkRecords.write(session, { volume, pid, at: Date.now() })
}

/** Returns the milliseconds for which a walk of the volume may report nothing; undefined: as for any other work. */
export function computeWalkSilenceLimitMs(session: Session, volume: string): number | undefined {
  const { at } = givenUpWalkRecords.find(session, volume).record ?? {}
  const age = at === undefined ? RECENT_GIVEN_UP_WALK_MS : Date.now() - at
  return age >= 0 && age < RECENT_GIVEN_UP_WALK_MS ? RETRIED_WALK_SILENCE_LIMIT_MS : undefined
}

/** @throws {Refusal} if a process that made this mount call before was given up: it recorded the mount before its walk */
export function refuseGivenUpMount(session: Session, directory: string): void {
  if (session.givenUp === undefined) return
  const { volume } = mountRecords.find(session, directory).record ?? {}
  refuseGivenUpCall(session, volume !== undefined && hasVolumeJournal(session, volume) ? volume : undefined)
}

/** @throws {Refusal} if a process that made this call before was given up. Its walk of the volume is recorded */
export function refuseGivenUpCall(session: Session, volume: string | undefined): void {
  const { givenUp } = session
  if (givenUp === undefined) return
  if (volume !== undefined) recordGivenUpWalk(session, volume, givenUp)
  throw new Refusal(createGivenUpProcessFault(givenUp))
}

const LOCKED_DIRECTORY_CAUSE =
  "the kernel of the node made it wait, for the volume's disk or for a directory that another process keeps locked"
const LOCKED_DIRECTORY_REMEDY = 'end the process that keeps a directory of the volume locked, or repair the disk'

/** Explains why a call on a volume of this node's own disks was given up. */
export function createGivenUpProcessFault({ pid, seconds, isLeft }: GivenUpProcess): Fault {
  const still = isLeft ? ', and it still waits' : ''
  const reason = `process ${pid}, which worked on the volume, was given up after ${seconds} s (${LOCKED_DIRECTORY_CAUSE})${still}`
  return createFault('walk-given-up', reason, `${LOCKED_DIRECTORY_REMEDY}; the next call goes on`)
}

/** The most processes of a namespace that were given up and have not ended. */
export const MAX_UNKILLABLE_WORKERS = 4

/**
 * Explains why no further process is started.
 * @param owner a namespace or a directory
 * @param pids of given-up processes
 */
export function createTooManyUnkillableWorkersFault(owner: string, pids: readonly number[]): Fault {
  return createFault(
    'walk-given-up',
    `${pids.length} processes that worked on volumes of ${owner} were given up and still wait in the kernel (${pids.join(', ')})`,
    'end the processes that keep directories of these volumes locked, or repair their disks or servers',
  )
}

/** Explains why a volume is not accessed: a process that worked on it was given up before. */
export function createUnkillableProcessFault(pid: number | undefined): Fault {
  const reason = `process ${pid}, which worked on the volume, was given up and still waits in the kernel`
  return createFault('walk-given-up', reason, LOCKED_DIRECTORY_REMEDY)
}

/** Like `createGivenUpProcessFault`, for a walk by a worker. @param waiting clause that names a worker that still waits, or '' */
export function createGivenUpWalkFault(source: string, seconds: number, pid: number, waiting: string): Fault {
  const remedy = `${LOCKED_DIRECTORY_REMEDY}, and the next call goes on where this one was${waiting}`
  return createSilentProcessFault(`the walk of ${quoteValue(source)}`, seconds, pid, remedy)
}

/** Like `createGivenUpWalkFault`, for a lookup of names in a volume. */
export function createGivenUpLookupFault(directory: string, seconds: number, pid: number, waiting: string): Fault {
  return createSilentProcessFault(
    `the lookup in ${quoteValue(directory)}`,
    seconds,
    pid,
    `${LOCKED_DIRECTORY_REMEDY}${waiting}`,
  )
}

/** Like `createGivenUpWalkFault`, for a change of a volume's root. */
export function createGivenUpRootChangeFault(source: string, seconds: number, pid: number, waiting: string): Fault {
  return createSilentProcessFault(
    `the change of the root of ${quoteValue(source)}`,
    seconds,
    pid,
    `${LOCKED_DIRECTORY_REMEDY}${waiting}`,
  )
}

function createSilentProcessFault(what: string, seconds: number, pid: number, remedy: string): Fault {
  const reason = `${what} was given up: process ${pid} had reported nothing for ${seconds} s (${LOCKED_DIRECTORY_CAUSE})`
  return createFault('walk-given-up', reason, remedy)
}
