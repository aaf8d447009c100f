import { findVolumeKindFaults } from '../config/request.ts'
import { getSourcePath } from '../config/source.ts'
import type { FaultCode } from '../errors/entries/index.ts'
import { createFault } from '../errors/fault.ts'
import { quoteValue, Refusal } from '../errors/refusal.ts'
import { getErrno, type Handle, openOnlyCached } from '../kernel/host.ts'
import { isRemoteFsType, LOCAL_LOOKUP_HANG_CAUSE } from '../kernel/mount-table/responsiveness.ts'
import { mountPodVolumeLocked } from '../mount/mount.ts'
import { formatPodDirectoryLeftovers } from '../mount/unmount.ts'
import { type MountRecord, rebuildMountRequest } from '../state/mount-record.ts'
import type { Session } from '../state/session.ts'
import { findVolumeKind, volumeKindLookup } from '../volume/index.ts'
import {
  createUnresponsiveSourceCheck,
  isLocalSource,
  isSourceCheckRemote,
  needsIsolatedMount,
  type UnresponsiveSourceCheck,
} from '../volume/unresponsive-source.ts'
import { runIsolatedWork, UnresponsiveRefusal } from '../worker/isolated.ts'
import {
  explainPartialGroup,
  findVolumeChange,
  forgetEndedMount,
  type JudgedMount,
  judgeMount,
  judgeMountLocked,
} from './heal-plan.ts'
import {
  HEALTHY_OUTCOME,
  type HealOutcome,
  IN_PROGRESS_OUTCOME,
  toFailedHealOutcome,
  UNRESPONSIVE_OUTCOME,
} from './state.ts'

const SERVER_UNRESPONSIVE_REASON = 'health unknown: the server of its source does not respond'

/** Explains why the source was not compared with the mount. */
function explainUnknownHealth({ host }: Session, { request }: MountRecord): string {
  if (isRemoteFsType(request.fsType) || !isLocalSource(host, request)) return SERVER_UNRESPONSIVE_REASON
  return `health unknown: the lookup of its source does not end (${LOCAL_LOOKUP_HANG_CAUSE})`
}

/** Judges without the lock. */
export async function judgeMountWithoutLock(
  session: Session,
  record: MountRecord,
  isUnresponsive: UnresponsiveSourceCheck,
): Promise<HealOutcome> {
  try {
    return await judgeMount(session, record, (judged) => repairMount(session, judged, isUnresponsive, true))
  } catch (error) {
    return toFailedHealOutcome('unknown', error)
  }
}

/** Judges again, under the lock, and repairs. */
export async function healMount(
  session: Session,
  record: MountRecord,
  seen: HealOutcome['state'],
  isUnresponsive: UnresponsiveSourceCheck,
): Promise<HealOutcome | 'gone'> {
  const { directory } = record
  if (needsIsolatedMount(session, record.request) || mayRepairWaitForLockedDirectory(session, record)) {
    return healMountIsolated(session, { record, seen, isDry: false })
  }
  try {
    const cachedSession = createCachedOpenSession(session)
    const done = await judgeMountLocked(session, directory, (judged) =>
      repairMount(cachedSession, judged, isUnresponsive, false),
    )
    return done === 'locked' ? IN_PROGRESS_OUTCOME : done
  } catch (error) {
    if (mustNotWaitForDirectory(session) && getErrno(error) === 'EAGAIN') {
      return healMountIsolated(session, { record, seen, isDry: false })
    }
    return toFailedHealOutcome(seen, error)
  }
}

/** Whether this process must not wait for a directory that is locked. */
const mustNotWaitForDirectory = ({ isolatesWalks, mayHang }: Session): boolean => isolatesWalks === true && !mayHang

/** Opens a source only from the kernel's cache, because it may be replaced after `mayRepairMeetLockedDirectory`. */
function createCachedOpenSession(session: Session): Session {
  if (!mustNotWaitForDirectory(session)) return session
  const { inodes } = session.host
  const { openLinkFree } = openOnlyCached(inodes)
  return { ...session, host: { ...session.host, inodes: { ...inodes, openLinkFree } } }
}

/** Whether a repair looks up names in a volume, or changes its root: a process of a pod can block both. */
function mayRepairWaitForLockedDirectory(session: Session, record: MountRecord): boolean {
  if (!mustNotWaitForDirectory(session)) return false
  const { subPath, rootSetGid, source: requested } = rebuildMountRequest(record)
  if (subPath !== undefined || rootSetGid) return true
  const source = getSourcePath(requested)
  return source !== undefined && !session.host.inodes.isCached(source)
}

/** The task of the isolated process. */
interface HealTask {
  record: MountRecord
  seen: HealOutcome['state']
  isDry: boolean
}

/** Heals in an isolated process: a server may respond to the check of its state, and to no request after it. */
async function healMountIsolated(session: Session, about: HealTask): Promise<HealOutcome | 'gone'> {
  try {
    const { record } = about
    const givenUp = (_: number, waiting: string) =>
      createFault('unresponsive-call', `${explainUnknownHealth(session, record)}${waiting}`)
    const { pod, directory } = record
    const owner = pod === undefined ? `directory ${quoteValue(directory)}` : `namespace ${pod.split('/')[0]}`
    return await runIsolatedWork(session, { work: 'heal', about, owner, givenUp })
  } catch (error) {
    if (error instanceof UnresponsiveRefusal) return { ...UNRESPONSIVE_OUTCOME, reason: error.message }
    return toFailedHealOutcome(about.seen, error)
  }
}

/** Heals or judges a mount in the isolated process. The caller waits for it, and each walk has a process of its own. */
export function runHealTask(
  caller: Session,
  _: Handle,
  { record, seen, isDry }: HealTask,
): Promise<HealOutcome | 'gone'> {
  const session: Session = { ...caller, isolatesWalks: true }
  const isUnresponsive = createUnresponsiveSourceCheck(session)
  return isDry
    ? judgeMountWithoutLock(session, record, isUnresponsive)
    : healMount(session, record, seen, isUnresponsive)
}

async function repairMount(
  session: Session,
  judged: JudgedMount,
  isUnresponsive: UnresponsiveSourceCheck,
  isDry: boolean,
): Promise<HealOutcome> {
  const { record, plan } = judged
  const { state, action, reason } = plan
  try {
    switch (action) {
      case 'leave':
        return { state, action: 'none', reason }
      case 'forget':
        return isDry ? predictForgetOutcome(judged) : await forgetJudgedMount(session, judged)
      case 'mount':
        if (await isUnresponsive(record))
          return { ...UNRESPONSIVE_OUTCOME, reason: explainUnknownHealth(session, record) }
        if (!isSourceCheckRemote(session, record.request)) {
          return isDry ? await planRemount(session, judged) : await remountVolume(session, judged, false)
        }
        // Kubelet's next call finds a source that was replaced on a server.
        if (state === 'healthy' && findVolumeKind(record.request.fsType)?.root === 'source') return HEALTHY_OUTCOME
        return (await healMountIsolated(session, { record, seen: state, isDry })) as HealOutcome
    }
  } catch (error) {
    if (!isDry && mustNotWaitForDirectory(session) && getErrno(error) === 'EAGAIN') throw error
    return toFailedHealOutcome(state, error)
  }
}

/** Plans without waiting for a lookup: if the path is not in the kernel's cache, an isolated process plans. */
async function planRemount(session: Session, judged: JudgedMount): Promise<HealOutcome> {
  if (!mustNotWaitForDirectory(session)) return remountVolume(session, judged, true)
  const host = { ...session.host, inodes: openOnlyCached(session.host.inodes) }
  try {
    return await remountVolume({ ...session, host }, judged, true)
  } catch (error) {
    if (getErrno(error) !== 'EAGAIN') throw error
    const { record, plan } = judged
    return (await healMountIsolated(session, { record, seen: plan.state, isDry: true })) as HealOutcome
  }
}

async function forgetJudgedMount(session: Session, judged: JudgedMount): Promise<HealOutcome> {
  const { state, reason } = judged.plan
  const { left, busy } = await forgetEndedMount(session, judged)
  // A bind that was removed from the pod's directory may have been the file system's last mount.
  if (busy !== undefined && left.length === 0)
    return { state: 'busy', action: 'none', reason: busy.reason, code: 'unmount-busy' }
  return { state, ...decideForgetOutcome(reason, left) }
}

/** Predicts the result of `forgetJudgedMount`, by the leftovers that an earlier call could not remove. */
function predictForgetOutcome({ plan: { state, reason }, left }: JudgedMount): HealOutcome {
  return { state, ...decideForgetOutcome(reason, left) }
}

/** @param left leftovers in the pod's directory */
function decideForgetOutcome(reason: string, left: readonly string[]): Omit<HealOutcome, 'state'> {
  if (left.length === 0) return { action: 'forgotten', reason }
  return { action: 'failed', reason: formatPodDirectoryLeftovers(left), code: 'pod-directory' }
}

const UNSTORED_SECRETS =
  'its secrets came with the call that mounted it and are not stored: delete the pod to mount it again'

const HEAL_ACTION_BY_DECISION = { fresh: 'mounted', replace: 'replaced', refuse: 'failed', ready: 'none' } as const

/**
 * Does the same as kubelet's next call for the mount. Must be called under the mount's lock, except for a dry run.
 * @throws {Refusal} if the mount cannot be made
 */
export async function remountVolume(
  session: Session,
  { record, point, plan: { state, reason } }: JudgedMount,
  isDry: boolean,
): Promise<HealOutcome> {
  if (point === undefined) return { state: 'orphaned', action: 'none', reason: 'its directory is gone' }
  const request = { ...rebuildMountRequest(record), directory: point.path }
  // The configuration may have changed since.
  const faults = findVolumeKindFaults(request, session.config, volumeKindLookup)
  if (faults.length > 0) throw new Refusal(faults)
  const warn = (message: string, code: FaultCode) => session.warn(`${point.path}: ${message}`, code)
  // The finding reports the result, so the call writes no notes.
  const quiet = { ...session, note: () => {}, warn }
  const isSecretive = record.hadSecrets
  const mode = { isDry, finishes: isSecretive, isHealing: true }
  const { plan, healthUnknownReason, walked, shownGroup, isInProgress } = await mountPodVolumeLocked(
    quiet,
    request,
    point,
    mode,
  )
  if (plan.decision === 'ready') {
    const isUnfinished = plan.steps.length > 0
    if (healthUnknownReason !== undefined) return { ...UNRESPONSIVE_OUTCOME, reason: healthUnknownReason }
    const change = findVolumeChange(session, record, walked)
    if (change !== undefined && !isUnfinished)
      return { state: 'changed', action: 'none', reason: change, code: 'group-changed' }
    const partial = explainPartialGroup(session, record, walked, shownGroup)
    if (partial !== undefined && !isUnfinished)
      return { state: 'partial', action: 'none', reason: partial, code: 'group-partial' }
    return { ...HEALTHY_OUTCOME, isUnfinished }
  }
  if (isInProgress) return { ...IN_PROGRESS_OUTCOME, reason: 'a call is at work on its volume' }
  const found = { state: state === 'healthy' ? 'stale' : state, reason: reason || plan.reason } as const
  if (isSecretive) {
    return { ...found, action: 'failed', reason: `${found.reason}, and ${UNSTORED_SECRETS}`, code: 'secret-not-stored' }
  }
  return { ...found, action: HEAL_ACTION_BY_DECISION[plan.decision] }
}
