import { dirname } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { leftInPod, unmountLocked } from '../mount/unmount.ts'
import { podDirectoryOf } from '../mount-table/kubelet-volume.ts'
import { parseMountinfo } from '../mount-table/mountinfo.ts'
import { sourcePath } from '../request/source.ts'
import { removeLeftovers } from '../store/leftovers.ts'
import { isPlaceBusy } from '../store/locks.ts'
import { listMountRecords, listMounts, type MountRecord, mountRecords } from '../store/mount-record.ts'
import { mountPlace } from '../store/places.ts'
import type { Session } from '../store/session.ts'
import { unrecordedMounts } from '../store/unrecorded.ts'
import { sweepStages } from '../volume/kind/staged.ts'
import { type IsSilent, mayWait, silentSources } from '../volume/silence.ts'
import { failed, healOne, IN_PROGRESS, look, type Outcome } from './heal-record.ts'
import { judge, judgeLocked } from './judge.ts'
import { Kubelets } from './kubelets.ts'
import type { Finding } from './state.ts'

/** Milliseconds for which repairs of local volumes wait for the one before. */
const LONGEST_TURN = 1000

const UNDER_REPAIR: Outcome = { ...IN_PROGRESS, reason: 'it is being repaired' }

/**
 * Repairs the mounts that are recorded: what kubelet's next call would do, without waiting for it. Mounts that a call
 * is at work on are passed over.
 * @param isDry says what would be done, and does nothing
 * @param patience milliseconds, for a repair: one that takes longer goes on, and counts as in progress. Undefined: all
 *   are waited for
 * @param kubelets what they have said to earlier heals of this process
 */
export async function healMounts(
  session: Session,
  isDry: boolean,
  patience?: number,
  kubelets = new Kubelets(),
): Promise<Finding[]> {
  if (!isDry) sweepStages(session)
  const isSilent = silentSources(session)
  const mounts = listMounts(session)
  const repairs = new Map<string, Promise<unknown>>()
  // All at once, so that a server that does not respond delays nobody else; repairs in turn, but for such sources too.
  const outcomes = await Promise.all(
    mounts.map(async ({ record }) => {
      const seen = record && (await lookAgain(session, record, isSilent))
      if (!record || seen === undefined || seen === 'gone' || seen.state === 'in progress') return seen
      const ofGonePod = await healOrphan(session, record, seen, { isDry, patience, kubelets })
      if (ofGonePod !== undefined || isDry || isSettled(seen)) return ofGonePod ?? seen
      const { request } = record
      const isLocal = !mayWait(session, request)
      const turn = isLocal ? '' : JSON.stringify(request.source)
      const before = repairs.get(turn) ?? Promise.resolve()
      const repaired = before.then(() => healOne(session, record, seen.state, isSilent))
      // A directory of a local volume may be locked: others wait a moment for its repair.
      repairs.set(
        turn,
        isLocal ? Promise.race([repaired, setTimeout(LONGEST_TURN, undefined, { ref: false })]) : repaired,
      )
      if (patience === undefined) return repaired
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
  return [...findings, ...unrecorded(session, new Set(findings.map(({ directory }) => directory)))]
}

interface Manner {
  isDry: boolean
  patience: number | undefined
  kubelets: Kubelets
}

/**
 * Unmounts what a pod has left that is gone without an unmount.
 * @returns undefined for a mount that is to be healed as any other
 */
async function healOrphan(
  session: Session,
  record: MountRecord,
  seen: Outcome,
  { isDry, patience, kubelets }: Manner,
): Promise<Outcome | 'gone' | undefined> {
  let fate = await kubelets.fateOf(session.host, record)
  if (fate.is === 'living') return undefined
  // What is to be forgotten, and what modekeep does not know, stays as it is judged.
  if (!(await judge(session, record, ({ plan }) => plan.action === 'mount'))) return undefined
  if (fate.is === 'going' && !isDry) {
    if (patience !== undefined) return ASKED_AGAIN
    // A timer may be early by a moment.
    await setTimeout(fate.wait + 5)
    fate = await kubelets.fateOf(session.host, record)
  }
  switch (fate.is) {
    case 'living':
      return undefined
    case 'doubtful':
      return isSettled(seen) ? { state: 'orphaned', action: 'none', reason: fate.reason } : undefined
    case 'going':
    case 'gone':
      if (isDry) return { state: 'orphaned', action: 'unmounted', reason: `${fate.reason}: modekeep heal unmounts it` }
      return unmountOrphan(session, record, kubelets)
  }
}

const ASKED_AGAIN: Outcome = { ...IN_PROGRESS, reason: 'its pod seems to be gone: kubelet is asked once more' }

/** Judges again, under the lock: kubelet may have mounted it anew, or be unmounting it. */
async function unmountOrphan(session: Session, record: MountRecord, kubelets: Kubelets): Promise<Outcome | 'gone'> {
  try {
    const done = await judgeLocked(session, record.directory, async (judged): Promise<Outcome> => {
      if (judged.plan.action !== 'mount' || JSON.stringify(judged.record) !== JSON.stringify(record)) return IN_PROGRESS
      const fate = await kubelets.fateOf(session.host, record)
      if (fate.is !== 'gone') return ASKED_AGAIN
      const { left, busy } = await unmountLocked(session, judged.point, record)
      kubelets.forget(record.directory)
      if (busy) session.warn(`${record.directory}: ${busy.reason}`)
      if (left.length > 0) return { state: 'orphaned', action: 'failed', reason: leftInPod(left) }
      if (busy) return { state: 'busy', action: 'unmounted', reason: `${fate.reason}; ${busy.reason}` }
      return { state: 'orphaned', action: 'unmounted', reason: fate.reason }
    })
    return done === 'locked' ? IN_PROGRESS : done
  } catch (error) {
    return failed('orphaned', error)
  }
}

/** Only a call that brings its request can put such a mount on record again. */
export const LOST = {
  pod: '',
  state: 'unknown',
  action: 'none',
  reason:
    'it is mounted without a record: its pod goes on, but heal cannot repair the mount, and no other group gets the volume; ' +
    "delete the pod, or wait for kubelet's next call for it, which CSI has every few minutes",
} as const

/** @param known what was on record a moment ago */
function unrecorded(session: Session, known: ReadonlySet<string>): Finding[] {
  const table = parseMountinfo(session.host.mounts.table())
  return unrecordedMounts(session, table)
    .filter((directory) => !known.has(directory))
    .map((directory) => ({ directory, ...LOST }))
}

/**
 * A pod's author chooses how deep a subPath is, and the kernel bounds how many directories a user may watch. A link above
 * these levels that is exchanged is found by the next periodic heal.
 */
const MAX_WATCHED_LEVELS = 32

/**
 * Directories whose changes may make a mount stale: those of pods with mapped groups, the sources, those that they lie in, and with a subPath all between
 * the source and what was found there, where a link may be exchanged.
 */
export function sourceDirectories(session: Session): string[] {
  const directories = new Set<string>()
  for (const record of listMountRecords(session)) {
    // Kubelet writes there whether the pod has a user namespace, after the call that mapped.
    const pod = record.given.by === 'idmap' ? podDirectoryOf(record.directory) : undefined
    if (pod !== undefined) directories.add(pod)
    const source = sourcePath(record.request.source)
    if (source === undefined) continue
    for (const directory of [source, dirname(source)]) directories.add(directory)
    let at = dirname(record.source ?? source)
    for (let level = 0; level < MAX_WATCHED_LEVELS && at.startsWith(`${source}/`); level++) {
      directories.add(at)
      at = dirname(at)
    }
  }
  return [...directories].sort()
}

/** Whether nothing is to be done, which a look without the lock is enough for. */
function isSettled(seen: Outcome): boolean {
  return (
    (seen.state === 'healthy' && !seen.isUnfinished) ||
    seen.state === 'changed' ||
    seen.state === 'partial' ||
    seen.isSilent === true
  )
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
    if (wasBusy || isPlaceBusy(session, place)) return IN_PROGRESS
    const now: MountRecord | undefined = mountRecords.find(session, listed.directory).record
    if (now === undefined) return 'gone'
    if (JSON.stringify(now) === JSON.stringify(record)) return seen
    record = now
  }
  return IN_PROGRESS
}

const MOST_LOOKS = 5
