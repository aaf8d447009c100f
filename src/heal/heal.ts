import { dirname } from 'node:path'
import { mountLocked } from '../mount/mount.ts'
import { forgetLocked } from '../mount/unmount.ts'
import { lookAt, type MountPoint, openMountPoint, type Seen, statPoint } from '../mount-table/mount-point.ts'
import { Refusal } from '../refusal/refusal.ts'
import { kindFaults } from '../request/request.ts'
import { releaseMount, removeLeftovers } from '../store/leftovers.ts'
import { isMountBusy, tryLockMount } from '../store/locks.ts'
import { listMountRecords, type MountRecord, readMountRecord, requestOf } from '../store/mount-record.ts'
import type { Session } from '../store/session.ts'
import { type IsSilent, silentSources } from '../volume/daemon.ts'
import { kinds } from '../volume/index.ts'
import { sweepStages } from '../volume/kind/staged.ts'
import { type HealPlan, planHeal } from './plan.ts'

/** What heal found of a recorded mount, and did. */
export interface Finding {
  directory: string
  pod: string
  outcome: 'healthy' | 'busy' | 'mounted again' | 'replaced' | 'forgotten' | 'left' | 'failed'
  /** In words; '' where all is well, as far as can be told. */
  reason: string
}

/**
 * Mends the mounts that are recorded: what kubelet's next call would mend, without waiting for it. Mounts that a call is
 * at work on are passed over.
 * @param isDry says what would be done, and does nothing
 */
export async function healMounts(session: Session, isDry: boolean): Promise<Finding[]> {
  if (!isDry) sweepStages(session)
  const findings: Finding[] = []
  const isSilent = silentSources(session)
  for (const record of listMountRecords(session.host, session.config.stateDir)) {
    const found = await healOne(session, record, isSilent, isDry).catch((error) => failed(error))
    if (!found) continue
    const { outcome, reason } = found
    findings.push({ directory: record.directory, pod: record.pod ?? '', outcome, reason })
  }
  if (!isDry) removeLeftovers(session)
  return findings
}

/**
 * Directories whose changes may make a mount stale: the sources, those that they lie in, and with a subPath all between
 * the source and what was found there, where a link may be exchanged.
 */
export function sourceDirectories({ host, config }: Session): string[] {
  const directories = new Set<string>()
  for (const record of listMountRecords(host, config.stateDir)) {
    const { source } = record.request
    if (source === '') continue
    for (const directory of [source, dirname(source)]) directories.add(directory)
    for (let at = dirname(record.source); at.startsWith(`${source}/`); at = dirname(at)) directories.add(at)
  }
  return [...directories].sort()
}

type Found = Pick<Finding, 'outcome' | 'reason'> & {
  /** It is healthy, but a call that died has left something to do. */
  isUnfinished?: boolean
}

function failed(error: unknown): Found {
  return { outcome: 'failed', reason: error instanceof Error ? error.message : String(error) }
}

/**
 * Looks without the lock, as a source whose server or daemon is gone may not answer, and kubelet's own calls must not wait
 * for that; what is to be mended is looked at once more under the lock.
 * @returns undefined where the record is gone meanwhile
 */
async function healOne(
  session: Session,
  record: MountRecord,
  isSilent: IsSilent,
  isDry: boolean,
): Promise<Found | undefined> {
  const seen = await look(session, record, isSilent)
  if (seen.outcome === 'left' || (seen.outcome === 'healthy' && !seen.isUnfinished)) return seen
  if (isDry) return isMountBusy(session.host, session.config.stateDir, record.directory) ? BUSY : seen
  return mend(session, record, isSilent)
}

const BUSY: Found = { outcome: 'busy', reason: 'a call is at work on it' }

async function look(session: Session, record: MountRecord, isSilent: IsSilent): Promise<Found> {
  const point = openMountPoint(session.host, record.directory)
  try {
    return await healLocked(session, record, point, isSilent, true).catch(failed)
  } finally {
    if (point) session.host.inodes.close(point.parent)
  }
}

function mend(session: Session, { directory }: MountRecord, isSilent: IsSilent): Promise<Found | undefined> {
  return underItsLock(session, directory, (record, point) => healLocked(session, record, point, isSilent, false))
}

/**
 * Does something to a recorded mount that no call is at work on.
 * @returns undefined where the record is gone meanwhile
 */
export async function underItsLock<T>(
  session: Session,
  directory: string,
  work: (record: MountRecord, point: MountPoint | undefined) => Promise<T>,
): Promise<T | typeof BUSY | undefined> {
  const { host, config } = session
  const lock = tryLockMount(host, config.stateDir, directory)
  if (lock === undefined) return BUSY
  let point: MountPoint | undefined
  try {
    point = openMountPoint(host, directory)
    const record = readMountRecord(host, config.stateDir, directory)
    return record && (await work(record, point))
  } finally {
    if (point) host.inodes.close(point.parent)
    releaseMount(session, directory, lock)
  }
}

async function healLocked(
  session: Session,
  record: MountRecord,
  point: MountPoint | undefined,
  isSilent: IsSilent,
  isDry: boolean,
): Promise<Found> {
  const plan = planOf(session, record, point)
  switch (plan.action) {
    case 'leave':
      return { outcome: 'left', reason: plan.reason }
    case 'forget':
      if (!isDry) await forgetLocked(session, point, record, plan.pays ?? false)
      return { outcome: 'forgotten', reason: plan.reason }
    case 'mount':
      if (await isSilent(record)) {
        return { outcome: 'left', reason: 'its source does not answer, so that nobody can tell whether it is well' }
      }
      return remount(session, record, point, plan.reason, isDry)
  }
}

/** What is to become of a recorded mount. */
export function planOf(session: Session, record: MountRecord, point: MountPoint | undefined): HealPlan {
  return planHeal({ record, boot: session.host.bootId(), ...lookAround(session, record, point) })
}

function lookAround({ host }: Session, record: MountRecord, point: MountPoint | undefined) {
  const seen: Seen = point ? lookAt(host, point, statPoint(host, point)) : { mounted: undefined, target: 'missing' }
  return { ...seen, showsSource: showsVolume(record, seen.mounted) }
}

/** A volume's identity ends in its root's inode number and birth time. */
function showsVolume({ volume, mounted: recorded }: MountRecord, mounted: Seen['mounted']): boolean {
  if (mounted === undefined || mounted === 'broken' || volume === undefined) return false
  return mounted.device === recorded?.device && volume.split('-').at(-2) === mounted.inode.toString(16)
}

const NO_SECRETS =
  'its secrets came with the call that mounted it and are kept nowhere: delete the pod to mount it anew'

const OUTCOMES = { fresh: 'mounted again', replace: 'replaced', refuse: 'failed' } as const

async function remount(
  session: Session,
  record: MountRecord,
  point: MountPoint | undefined,
  reason: string,
  isDry: boolean,
): Promise<Found> {
  if (point === undefined) return { outcome: 'left', reason: 'its directory is gone' }
  const request = { ...requestOf(record), directory: point.path }
  // The configuration may have changed since.
  const faults = kindFaults(request, session.config, kinds)
  if (faults.length > 0) throw new Refusal(faults)
  const isSecretive = record.hadSecrets
  // What is told of one mount is its finding.
  const warnings: string[] = []
  const warn = (message: string) => {
    warnings.push(message)
    session.warn(`${point.path}: ${message}`)
  }
  const quiet = { ...session, note: () => {}, warn }
  const { plan } = await mountLocked(quiet, request, point, { isDry: isDry || isSecretive, isKept: true })
  if (isSecretive && plan.decision !== 'ready')
    return { outcome: 'failed', reason: `${reason || plan.reason}, and ${NO_SECRETS}` }
  if (plan.decision === 'ready') {
    return { outcome: 'healthy', reason: warnings.join('; '), isUnfinished: plan.steps.length > 0 }
  }
  return { outcome: OUTCOMES[plan.decision], reason: reason || plan.reason }
}
