import { findState, isOver } from '../heal/find-state.ts'
import { isUnwell, type MountState } from '../heal/state.ts'
import { deferClose } from '../host/host.ts'
import type { SpaceUsage } from '../host/inodes.ts'
import { type MountPoint, openMountPoint } from '../mount-table/mount-point.ts'
import { isLocalMount, RESPONSE_TIMEOUT_MS } from '../mount-table/responsiveness.ts'
import { type MountRecord, mountRecords } from '../store/mount-record.ts'
import type { Session } from '../store/session.ts'
import { statServed } from '../volume/daemon.ts'
import { createNotPublished, type VolumeStats } from './worker-tasks.ts'

/** States in which the volume, or a former version of it, is mounted. */
const MOUNTED_STATES: ReadonlySet<MountState> = new Set(['healthy', 'changed', 'partial', 'stale', 'in progress'])

/**
 * Reads the state of a published volume, as status, heal and doctor do, and its usage. This process
 * never queries a file system that may be unresponsive.
 * @throws {CallFailure} NOT_FOUND if modekeep has published nothing at the path
 */
export async function readStats(session: Session, directory: string): Promise<VolumeStats> {
  using point = openMountPoint(session.host, directory)
  const found = point && (await findState(session, point.path))
  const { record } = point ? mountRecords.find(session, point.path) : {}
  if (!point || !found || (record && isOver(record, found))) throw createNotPublished(directory)
  const { state, reason } = found
  const space = MOUNTED_STATES.has(state) && record ? await readSpace(session, point, record) : undefined
  return { space, trouble: isUnwell(state) ? `${state}: ${reason}` : '' }
}

/** @returns undefined if the file system does not respond */
async function readSpace(session: Session, point: MountPoint, record: MountRecord): Promise<VolumeStats['space']> {
  const { inodes, daemons } = session.host
  const { stat, healthUnknownReason } = await statServed(session, point, record)
  if (healthUnknownReason !== undefined || stat === undefined || stat === 'broken') return undefined
  // `askServed` does not query a running daemon, but statfs(2) does, so its response is checked first.
  const isResponsive =
    isLocalMount(session.host, stat.mountId, point.path) ||
    (await daemons.answers(point.parent, point.name, RESPONSE_TIMEOUT_MS, `mount ${stat.mountId}`))
  if (!isResponsive) return undefined
  const root = inodes.openEntry(point.parent, point.name)
  using _ = deferClose(inodes, root)
  const { bytes, inodes: files } = inodes.space(root)
  return { bytes: formatSpace(bytes), inodes: formatSpace(files) }
}

function formatSpace({ total, used, available }: SpaceUsage): Record<keyof SpaceUsage, string> {
  return { total: String(total), used: String(used), available: String(available) }
}
