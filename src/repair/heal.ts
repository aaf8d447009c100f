import { setTimeout } from 'node:timers/promises'
import { findFaultCode } from '../errors/refusal.ts'
import { parseMountinfo } from '../kernel/mount-table/mountinfo.ts'
import { formatPodDirectoryLeftovers, unmountDeletedPodVolume } from '../mount/unmount.ts'
import { isRecordDirectoryBusy } from '../state/lock-holders.ts'
import { removeLeftoverRecordDirectories } from '../state/locks.ts'
import { listRecordedMounts, listUnrecordedMounts, type MountRecord, mountRecords } from '../state/mount-record.ts'
import { locateMountRecords } from '../state/record-directories.ts'
import type { Session } from '../state/session.ts'
import { unmountStaleStages } from '../volume/kind/staged.ts'
import {
  createOneUnresponsiveSourceCheck,
  createUnresponsiveSourceCheck,
  needsIsolatedMount,
  type UnresponsiveSourceCheck,
} from '../volume/unresponsive-source.ts'
import { judgeMount, judgeMountLocked } from './heal-plan.ts'
import { healMount, judgeMountWithoutLock } from './heal-record.ts'
import { KubeletPods } from './kubelets.ts'
import { type HealOutcome, IN_PROGRESS_OUTCOME, type MountFinding, toFailedHealOutcome } from './state.ts'

/**
 * Finds the state of one mount directory as `healMounts` does for all, so that CSI reports the same state as status and
 * doctor. Changes nothing.
 * @returns undefined if no mount of modekeep's is there or recorded
 */
export async function findMountState(session: Session, directory: string): Promise<MountFinding | undefined> {
  const { record, problem } = mountRecords.find(session, directory)
  if (problem) return toUnreadableRecordFinding(directory, problem)
  if (record === undefined) return findUnrecordedMounts(session, (place) => place === directory)[0]
  const mode = { isDry: true, patience: undefined, kubelets: new KubeletPods() }
  const { outcome } = await decideMountState(session, record, createOneUnresponsiveSourceCheck(session), mode)
  return toMountFinding(record, outcome)
}

/**
 * Decides the state of a recorded mount, for every command and protocol. Without `isDry` it unmounts the volumes of a deleted
 * pod.
 * @returns `isFinal`: there is nothing to repair
 */
async function decideMountState(
  session: Session,
  record: MountRecord,
  isUnresponsive: UnresponsiveSourceCheck,
  mode: HealMode,
): Promise<{ outcome: HealOutcome | 'gone'; isFinal: boolean }> {
  const outcome = await judgeMountUntilStable(session, record, isUnresponsive)
  if (outcome === 'gone' || outcome.state === 'in progress') return { outcome, isFinal: true }
  const orphanOutcome = await healOrphanedMount(session, record, outcome, mode)
  if (orphanOutcome !== undefined) return { outcome: orphanOutcome, isFinal: true }
  return { outcome, isFinal: mode.isDry || isHealSettled(outcome) }
}

function toUnreadableRecordFinding(directory: string, error: Error): MountFinding {
  const code = findFaultCode(error)
  return { directory, pod: '', state: 'unknown', action: 'none', reason: error.message, ...(code && { code }) }
}

/** @returns undefined if the record was removed meanwhile */
function toMountFinding({ directory, pod = '' }: MountRecord, outcome: HealOutcome | 'gone'): MountFinding | undefined {
  if (outcome === 'gone') return undefined
  const { state, action, reason, code } = outcome
  return { directory, pod, state, action, reason, ...(code && { code }) }
}

/** Whether a mount is unmounted and nothing is left of it: the next heal or gc removes its record, and it is in no state. */
export function isUnmountComplete({ ended }: MountRecord, { action }: Pick<MountFinding, 'action'>): boolean {
  return ended !== undefined && action === 'forgotten'
}

interface HealMode {
  isDry: boolean
  patience: number | undefined
  kubelets: KubeletPods
}

/**
 * Unmounts a volume of a pod that was deleted without an unmount.
 * @returns undefined for a mount that is healed like any other
 */
async function healOrphanedMount(
  session: Session,
  record: MountRecord,
  outcome: HealOutcome,
  { isDry, patience, kubelets }: HealMode,
): Promise<HealOutcome | 'gone' | undefined> {
  let fate = await kubelets.findFate(session.host, record)
  if (fate.is === 'living') return undefined
  // A mount whose record is to be removed, or that is not modekeep's, is no orphan.
  if (!(await judgeMount(session, record, ({ plan }) => plan.action === 'mount'))) return undefined
  if (fate.is === 'going' && !isDry) {
    if (patience !== undefined) return POD_CHECK_PENDING_OUTCOME
    // A timer may fire slightly early.
    await setTimeout(fate.wait + 5)
    fate = await kubelets.findFate(session.host, record)
  }
  switch (fate.is) {
    case 'living':
      return undefined
    case 'doubtful':
      return isHealSettled(outcome) ? { ...ORPHANED_FINDING, action: 'none', reason: fate.reason } : undefined
    case 'going':
    case 'gone':
      if (isDry)
        return { ...ORPHANED_FINDING, action: 'unmounted', reason: `${fate.reason}: modekeep heal unmounts it` }
      return unmountOrphan(session, record, kubelets)
  }
}

const ORPHANED_FINDING = { state: 'orphaned', code: 'pod-gone' } as const

const POD_CHECK_PENDING_OUTCOME: HealOutcome = {
  ...IN_PROGRESS_OUTCOME,
  reason: 'its pod seems to be gone: kubelet is asked once more',
}

/** Judges again, under the lock, because kubelet may have remounted the volume, or be unmounting it. */
async function unmountOrphan(
  session: Session,
  record: MountRecord,
  kubelets: KubeletPods,
): Promise<HealOutcome | 'gone'> {
  try {
    const done = await judgeMountLocked(session, record.directory, async (judged): Promise<HealOutcome> => {
      if (judged.plan.action !== 'mount' || JSON.stringify(judged.record) !== JSON.stringify(record))
        return IN_PROGRESS_OUTCOME
      const fate = await kubelets.findFate(session.host, record)
      if (fate.is !== 'gone') return POD_CHECK_PENDING_OUTCOME
      const { left, busy } = await unmountDeletedPodVolume(session, judged.point, record)
      kubelets.forget(record.directory)
      if (busy) session.warn(`${record.directory}: ${busy.reason}`, 'unmount-busy')
      if (left.length > 0)
        return { state: 'orphaned', action: 'failed', reason: formatPodDirectoryLeftovers(left), code: 'pod-directory' }
      if (busy)
        return { state: 'busy', action: 'unmounted', reason: `${fate.reason}; ${busy.reason}`, code: 'unmount-busy' }
      return { ...ORPHANED_FINDING, action: 'unmounted', reason: fate.reason }
    })
    return done === 'locked' ? IN_PROGRESS_OUTCOME : done
  } catch (error) {
    return toFailedHealOutcome('orphaned', error)
  }
}

/** Finding for a mount without a record. Only a call with its request can record such a mount again. */
export const UNRECORDED_MOUNT_FINDING = {
  pod: '',
  state: 'unknown',
  action: 'none',
  reason:
    'it is mounted without a record: its pod goes on, but heal cannot repair the mount, and no other group gets the volume; ' +
    "delete the pod, or wait for kubelet's next call for it, which CSI has every few minutes",
  code: 'mount-unrecorded',
} as const

/** Whether nothing is to be repaired, which can be judged without the lock. */
function isHealSettled(outcome: HealOutcome): boolean {
  return (
    (outcome.state === 'healthy' && !outcome.isUnfinished) ||
    outcome.state === 'changed' ||
    outcome.state === 'partial' ||
    outcome.isUnresponsive === true
  )
}

/**
 * Judges without the lock. A fault is reported only if no call used the mount from before the check until after it. Otherwise
 * the record may be an earlier mount's, and a running call looks like an interrupted one.
 */
async function judgeMountUntilStable(
  session: Session,
  listed: MountRecord,
  isUnresponsive: UnresponsiveSourceCheck,
): Promise<HealOutcome | 'gone'> {
  const place = locateMountRecords(session, listed.directory)
  let record: MountRecord | undefined = listed
  for (let looks = 0; looks < MAX_MOUNT_JUDGEMENTS; looks++) {
    const wasBusy = isRecordDirectoryBusy(session, place)
    const outcome: HealOutcome = await judgeMountWithoutLock(session, record, isUnresponsive)
    if (isHealSettled(outcome)) return outcome
    if (wasBusy || isRecordDirectoryBusy(session, place)) return IN_PROGRESS_OUTCOME
    const now: MountRecord | undefined = mountRecords.find(session, listed.directory).record
    if (now === undefined) return 'gone'
    if (JSON.stringify(now) === JSON.stringify(record)) return outcome
    record = now
  }
  return IN_PROGRESS_OUTCOME
}

const MAX_MOUNT_JUDGEMENTS = 5

/** Longest time for which the repair of a local volume waits for the one before. */
const REPAIR_WAIT_MS = 1000

const UNDER_REPAIR_OUTCOME: HealOutcome = { ...IN_PROGRESS_OUTCOME, reason: 'it is being repaired' }

/**
 * Repairs the recorded mounts as kubelet's next call would, without waiting for that call. Mounts that a call uses are
 * skipped.
 * @param isDry reports the repairs, and changes nothing
 * @param patience milliseconds for one repair: a longer one continues, and counts as in progress. Undefined: waits for all
 * @param kubelets the answers of kubelets to earlier heals of this process
 */
export async function healMounts(
  session: Session,
  isDry: boolean,
  patience?: number,
  kubelets = new KubeletPods(),
): Promise<MountFinding[]> {
  if (!isDry) unmountStaleStages(session)
  const isUnresponsive = createUnresponsiveSourceCheck(session)
  const mounts = listRecordedMounts(session)
  const repairs = new Map<string, Promise<unknown>>()
  const heal = async (record: MountRecord): Promise<HealOutcome | 'gone'> => {
    const { outcome, isFinal } = await decideMountState(session, record, isUnresponsive, { isDry, patience, kubelets })
    if (isFinal || outcome === 'gone') return outcome
    const isLocal = !needsIsolatedMount(session, record.request)
    const turn = isLocal ? '' : JSON.stringify(record.request.source)
    const before = repairs.get(turn) ?? Promise.resolve()
    const repaired = before.then(() => healMount(session, record, outcome.state, isUnresponsive))
    // A directory of a local volume may be locked, so other repairs wait for it only for a limited time.
    repairs.set(
      turn,
      isLocal ? Promise.race([repaired, setTimeout(REPAIR_WAIT_MS, undefined, { ref: false })]) : repaired,
    )
    if (patience === undefined) return repaired
    return Promise.race([repaired, setTimeout(patience, UNDER_REPAIR_OUTCOME, { ref: false })])
  }
  // Checks run concurrently, so that an unresponsive server delays no other mount. Repairs run in turn for
  // all local volumes, and for each other source.
  const all = await Promise.all(
    mounts.map(async ({ directory, record, problem }) => {
      if (problem) return toUnreadableRecordFinding(directory, problem)
      return record && toMountFinding(record, await heal(record))
    }),
  )
  const findings = all.filter((finding) => finding !== undefined)
  if (!isDry) removeLeftoverRecordDirectories(session)
  const found = new Set(findings.map(({ directory }) => directory))
  return [...findings, ...findUnrecordedMounts(session).filter(({ directory }) => !found.has(directory))]
}

/** Finds modekeep's mounts that have no record. @param isWanted checks a directory before its mount is examined */
function findUnrecordedMounts(session: Session, isWanted?: (directory: string) => boolean): MountFinding[] {
  const table = parseMountinfo(session.host.mounts.table())
  return listUnrecordedMounts(session, table, isWanted).map((directory) => ({ directory, ...UNRECORDED_MOUNT_FINDING }))
}
