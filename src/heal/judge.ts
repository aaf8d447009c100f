import { forgetLocked } from '../mount/unmount.ts'
import { lookAt, type MountPoint, openMountPoint, type Seen, statPoint } from '../mount-table/mount-point.ts'
import { releaseMount } from '../store/leftovers.ts'
import { tryLockMount } from '../store/locks.ts'
import { type MountRecord, readMountRecord } from '../store/mount-record.ts'
import type { Session } from '../store/session.ts'
import { type HealPlan, planHeal } from './plan.ts'

/** A recorded mount, what lies there, and what is to become of it. The point is open while it is worked with. */
export interface Judged {
  record: MountRecord
  /** Undefined where the directory's parent is gone. */
  point: MountPoint | undefined
  plan: HealPlan
}

/** Judges without the lock: for a dry run, and because kubelet's own calls must not wait for a source that does not respond. */
export async function judge<T>(
  session: Session,
  record: MountRecord,
  work: (judged: Judged) => T | Promise<T>,
): Promise<T> {
  const { host } = session
  const point = openMountPoint(host, record.directory)
  try {
    const seen: Seen = point ? lookAt(host, point, statPoint(host, point)) : { mounted: undefined, target: 'missing' }
    const view = { ...seen, showsSource: showsVolume(record, seen.mounted) }
    return await work({ record, point, plan: planHeal({ record, boot: host.bootId(), ...view }) })
  } finally {
    if (point) host.inodes.close(point.parent)
  }
}

/**
 * Judges again under the lock: what is changed is decided there alone.
 * @returns 'busy' where a call has the lock, 'gone' where the record is gone meanwhile
 */
export async function judgeLocked<T>(
  session: Session,
  directory: string,
  work: (judged: Judged) => T | Promise<T>,
): Promise<T | 'busy' | 'gone'> {
  const { host, config } = session
  const lock = tryLockMount(host, config.stateDir, directory)
  if (lock === undefined) return 'busy'
  try {
    const record = readMountRecord(host, config.stateDir, directory)
    return record ? await judge(session, record, work) : 'gone'
  } finally {
    releaseMount(session, directory, lock)
  }
}

/** Call it under the lock. The pending restore of a deleted pod is run; after a reboot the pod comes again. */
export function forget(session: Session, { record, point, plan }: Judged): Promise<void> {
  return forgetLocked(session, point, record, plan.state === 'orphaned')
}

/** A volume's identity ends in its root's inode number and birth time. */
function showsVolume({ volume, mounted: recorded }: MountRecord, mounted: Seen['mounted']): boolean {
  if (mounted === undefined || mounted === 'broken' || volume === undefined) return false
  return mounted.device === recorded?.device && volume.split('-').at(-2) === mounted.inode.toString(16)
}
