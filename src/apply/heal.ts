import { dirname } from 'node:path'
import { kinds } from '../filesystem/index.ts'
import { planHeal } from '../plan/heal.ts'
import { Refusal } from '../protocol/refusal.ts'
import { kindFaults } from '../protocol/request.ts'
import { listMountRecords, type MountRecord, readMountRecord } from '../state/mount-record.ts'
import { requestFrom } from '../state/request-key.ts'
import { releaseForGood, tryLockMount } from './locks.ts'
import { mountLocked } from './mount.ts'
import { lookAt, type MountPoint, openMountPoint, statPoint, targetOf } from './mount-point.ts'
import type { Session } from './session.ts'
import { sweepStages } from './sweep.ts'
import { forgetLocked } from './unmount.ts'

/** What heal found of a recorded mount, and did. */
export interface Finding {
  directory: string
  pod: string
  outcome: 'healthy' | 'busy' | 'mounted again' | 'replaced' | 'forgotten' | 'left' | 'failed'
  /** In words; '' where all is well. */
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
  for (const record of listMountRecords(session.host, session.config.stateDir)) {
    const found = await healOne(session, record, isDry).catch((error) => failed(error))
    if (found) findings.push({ directory: record.directory, pod: record.pod, ...found })
  }
  return findings
}

/** Directories whose changes may make a mount stale: the sources, and those that they lie in. */
export function sourceDirectories({ host, config }: Session): string[] {
  const sources = listMountRecords(host, config.stateDir).flatMap(({ request }) => requestFrom(request)?.source || [])
  return [...new Set(sources.flatMap((source) => [source, dirname(source)]))].sort()
}

type Found = Pick<Finding, 'outcome' | 'reason'>

function failed(error: unknown): Found {
  return { outcome: 'failed', reason: error instanceof Error ? error.message : String(error) }
}

/** @returns undefined where the record is gone meanwhile */
async function healOne(session: Session, { directory }: MountRecord, isDry: boolean): Promise<Found | undefined> {
  const { host, config } = session
  const lock = tryLockMount(host, config.stateDir, directory)
  if (lock === undefined) return { outcome: 'busy', reason: 'a call is at work on it' }
  const point = openMountPoint(host, directory)
  try {
    const record = readMountRecord(host, config.stateDir, directory)
    return record && (await healLocked(session, record, point, isDry))
  } finally {
    if (point) host.inodes.close(point.parent)
    if (readMountRecord(host, config.stateDir, directory)) lock.release()
    else releaseForGood(host, config.stateDir, directory, lock)
  }
}

async function healLocked(
  session: Session,
  record: MountRecord,
  point: MountPoint | undefined,
  isDry: boolean,
): Promise<Found> {
  const plan = planHeal({ record, boot: session.host.bootId(), ...lookAround(session, record, point) })
  switch (plan.action) {
    case 'leave':
      return { outcome: 'left', reason: plan.reason }
    case 'forget':
      if (!isDry) await forgetLocked(session, point, record)
      return { outcome: 'forgotten', reason: plan.reason }
    case 'mount':
      return remount(session, record, point, plan.reason, isDry)
  }
}

function lookAround({ host }: Session, record: MountRecord, point: MountPoint | undefined) {
  const stat = point && statPoint(host, point)
  if (point === undefined || stat === undefined) {
    return { mounted: undefined, target: 'missing', showsSource: false } as const
  }
  const mounted = lookAt(host, point, stat)
  const target = mounted === undefined && stat !== 'broken' ? targetOf(point, stat) : 'directory'
  return { mounted, target, showsSource: showsVolume(record, mounted) }
}

/** A volume's identity ends in its root's inode number and birth time. */
function showsVolume({ volume, device }: MountRecord, mounted: ReturnType<typeof lookAt>): boolean {
  if (mounted === undefined || mounted === 'broken' || volume === '') return false
  return mounted.device === device && volume.split('-').at(-2) === mounted.inode.toString(16)
}

const NO_SECRETS =
  'its secrets came with the call that mounted it and are kept nowhere: delete the pod to mount it anew'

const OUTCOMES = { ready: 'healthy', fresh: 'mounted again', replace: 'replaced', refuse: 'failed' } as const

async function remount(
  session: Session,
  record: MountRecord,
  point: MountPoint | undefined,
  reason: string,
  isDry: boolean,
): Promise<Found> {
  const asked = requestFrom(record.request)
  if (asked === undefined || point === undefined) return { outcome: 'left', reason: 'another version made its record' }
  const request = { ...asked, pod: record.pod, directory: point.path }
  // The configuration may have changed since.
  const faults = kindFaults(request, session.config, kinds)
  if (faults.length > 0) throw new Refusal(faults)
  const isSecretive = record.hadSecrets
  const { plan } = await mountLocked(session, request, point, isDry || isSecretive)
  if (isSecretive && plan.decision !== 'ready')
    return { outcome: 'failed', reason: `${reason || plan.reason}, and ${NO_SECRETS}` }
  return { outcome: OUTCOMES[plan.decision], reason: plan.decision === 'ready' ? '' : reason || plan.reason }
}
