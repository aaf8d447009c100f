import { dirname } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { mountLocked } from '../mount/mount.ts'
import { messageOf, Refusal } from '../refusal/refusal.ts'
import { kindFaults } from '../request/request.ts'
import { sourcePath } from '../request/source.ts'
import { removeLeftovers } from '../store/leftovers.ts'
import { isPlaceBusy } from '../store/locks.ts'
import { listMountRecords, listMounts, type MountRecord, mountRecords, requestOf } from '../store/mount-record.ts'
import { mountPlace } from '../store/places.ts'
import type { Session } from '../store/session.ts'
import { kindOf, kinds } from '../volume/index.ts'
import { sweepStages } from '../volume/kind/staged.ts'
import { type IsSilent, isLocalSource, silentSources } from '../volume/silence.ts'
import { forget, type Judged, judge, judgeLocked } from './judge.ts'
import type { Finding } from './state.ts'

/** What became of a mount. */
type Outcome = Pick<Finding, 'state' | 'action' | 'reason'> & {
  /** It is healthy, but an interrupted call has left something to do. */
  isUnfinished?: boolean
  /** Whoever tells of it does not respond: it stays as it is, and is not asked again under the lock. */
  isSilent?: boolean
}

const BUSY: Outcome = { state: 'busy', action: 'none', reason: 'a call is at work on it' }

const UNDER_REPAIR: Outcome = { ...BUSY, reason: 'it is being repaired' }

const UNANSWERED = { state: 'unknown', action: 'none', isSilent: true } as const

/**
 * Repairs the mounts that are recorded: what kubelet's next call would do, without waiting for it. Mounts that a call
 * is at work on are passed over.
 * @param isDry says what would be done, and does nothing
 * @param patience milliseconds, for a repair whose source a server or a daemon tells of: one that takes longer goes on,
 *   and counts as busy. Undefined: all are waited for
 */
export async function healMounts(session: Session, isDry: boolean, patience?: number): Promise<Finding[]> {
  if (!isDry) sweepStages(session)
  const isSilent = silentSources(session)
  const mounts = listMounts(session)
  const repairs = new Map<string, Promise<unknown>>()
  // All at once, so that a server that does not respond delays nobody else; repairs in turn, but for such sources too.
  const outcomes = await Promise.all(
    mounts.map(async ({ record }) => {
      const seen = record && (await lookAgain(session, record, isSilent))
      if (!record || seen === undefined || seen === 'gone' || isDry || isSettled(seen)) return seen
      const { request } = record
      const isLocal = isLocalSource(session.host, request)
      const turn = isLocal ? '' : JSON.stringify(request.source)
      const before = repairs.get(turn) ?? Promise.resolve()
      const repaired = before.then(() => healOne(session, record, seen.state, isSilent))
      repairs.set(turn, repaired)
      if (isLocal || patience === undefined) return repaired
      return Promise.race([repaired, setTimeout(patience, UNDER_REPAIR, { ref: false })])
    }),
  )
  const findings = mounts.flatMap(({ directory, record, problem }, index): Finding[] => {
    const outcome = outcomes[index]
    if (problem) return [{ directory, pod: '', state: 'unknown', action: 'none', reason: problem.message }]
    if (!record || outcome === undefined || outcome === 'gone') return []
    const { state, action, reason } = outcome
    return [{ directory, pod: record.pod ?? '', state, action, reason }]
  })
  if (!isDry) removeLeftovers(session)
  return findings
}

/**
 * Directories whose changes may make a mount stale: the sources, those that they lie in, and with a subPath all between
 * the source and what was found there, where a link may be exchanged.
 */
export function sourceDirectories(session: Session): string[] {
  const directories = new Set<string>()
  for (const record of listMountRecords(session)) {
    const source = sourcePath(record.request.source)
    if (source === undefined) continue
    for (const directory of [source, dirname(source)]) directories.add(directory)
    for (let at = dirname(record.source ?? source); at.startsWith(`${source}/`); at = dirname(at)) directories.add(at)
  }
  return [...directories].sort()
}

/** Whether nothing is to be done, which a look without the lock is enough for. */
function isSettled(seen: Outcome): boolean {
  return (seen.state === 'healthy' && !seen.isUnfinished) || seen.isSilent === true
}

/**
 * Judges without the lock. What is not well is only told if no call was at work on it from before the look until after
 * it: the record that was read may be an earlier mount's, and half a call looks like an interrupted one.
 */
async function lookAgain(session: Session, listed: MountRecord, isSilent: IsSilent): Promise<Outcome | 'gone'> {
  const place = mountPlace(session, listed.directory)
  let record: MountRecord | undefined = listed
  for (let looks = 0; looks < MOST_LOOKS; looks++) {
    const wasBusy = isPlaceBusy(session, place)
    const seen: Outcome = await look(session, record, isSilent)
    if (isSettled(seen)) return seen
    if (wasBusy || isPlaceBusy(session, place)) return BUSY
    const now: MountRecord | undefined = mountRecords.find(session, listed.directory).record
    if (now === undefined) return 'gone'
    if (JSON.stringify(now) === JSON.stringify(record)) return seen
    record = now
  }
  return BUSY
}

const MOST_LOOKS = 5

async function look(session: Session, record: MountRecord, isSilent: IsSilent): Promise<Outcome> {
  try {
    return await judge(session, record, (judged) => repair(session, judged, isSilent, true))
  } catch (error) {
    return failed('unknown', error)
  }
}

/** Judges again, under the lock, and repairs. */
async function healOne(
  session: Session,
  { directory }: MountRecord,
  seen: Outcome['state'],
  isSilent: IsSilent,
): Promise<Outcome | 'gone'> {
  try {
    const done = await judgeLocked(session, directory, (judged) => repair(session, judged, isSilent, false))
    return done === 'busy' ? BUSY : done
  } catch (error) {
    return failed(seen, error)
  }
}

async function repair(session: Session, judged: Judged, isSilent: IsSilent, isDry: boolean): Promise<Outcome> {
  const { state, action, reason } = judged.plan
  try {
    switch (action) {
      case 'leave':
        return { state, action: 'none', reason }
      case 'forget':
        if (!isDry) await forget(session, judged)
        return { state, action: 'forgotten', reason }
      case 'mount':
        if (!(await isSilent(judged.record))) return await remount(session, judged, isDry)
        return { ...UNANSWERED, reason: 'health unknown: the server of its source does not respond' }
    }
  } catch (error) {
    return failed(state, error)
  }
}

const NO_SECRETS = 'its secrets came with the call that mounted it and are not stored: delete the pod to mount it again'

const ACTIONS = { fresh: 'mounted', replace: 'replaced', refuse: 'failed', ready: 'none' } as const

/**
 * Does what kubelet's next call for the mount would do. Call it under the mount's lock, unless it is dry.
 * @throws {Refusal} where the mount cannot be made
 */
export async function remount(
  session: Session,
  { record, point, plan: { state, reason } }: Judged,
  isDry: boolean,
): Promise<Outcome> {
  if (point === undefined) return { state: 'orphaned', action: 'none', reason: 'its directory is gone' }
  const request = { ...requestOf(record), directory: point.path }
  // The configuration may have changed since.
  const faults = kindFaults(request, session.config, kinds)
  if (faults.length > 0) throw new Refusal(faults)
  const warn = (message: string) => session.warn(`${point.path}: ${message}`)
  // What is told of one mount is its finding.
  const quiet = { ...session, note: () => {}, warn }
  // Its server answers, as somebody else has asked. This process asks for no more than it must: a FUSE daemon may take
  // a request and never answer, and nobody could end who waits for that. Kubelet's next call looks at the source.
  if (state === 'healthy' && kindOf(request.fsType)?.root === 'source' && !isLocalSource(session.host, request)) {
    return { state, action: 'none', reason: '' }
  }
  const isSecretive = record.hadSecrets
  const manner = { isDry, finishes: isSecretive, isHealing: true }
  const { plan, doubt, isBusy } = await mountLocked(quiet, request, point, manner)
  if (plan.decision === 'ready') {
    const isUnfinished = plan.steps.length > 0
    if (doubt !== undefined) return { ...UNANSWERED, reason: doubt }
    return { state: 'healthy', action: 'none', reason: '', isUnfinished }
  }
  if (isBusy) return { ...BUSY, reason: 'a call is at work on its volume' }
  const found = { state: state === 'healthy' ? 'stale' : state, reason: reason || plan.reason } as const
  if (isSecretive) return { ...found, action: 'failed', reason: `${found.reason}, and ${NO_SECRETS}` }
  return { ...found, action: ACTIONS[plan.decision] }
}

/** @param state what the mount is as far as the mount table tells */
export function failed(state: Outcome['state'], error: unknown): Outcome {
  // What it shows is there, and can be had no more; any other error leaves open what it should show.
  const seen = state === 'healthy' ? (error instanceof Refusal ? 'stale' : 'unknown') : state
  return { state: seen, action: 'failed', reason: messageOf(error) }
}
