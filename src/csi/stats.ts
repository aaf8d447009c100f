import { look } from '../heal/heal-record.ts'
import { isUnwell, type MountState } from '../heal/state.ts'
import { closing } from '../host/host.ts'
import type { Space } from '../host/inodes.ts'
import { type MountPoint, openMountPoint } from '../mount-table/mount-point.ts'
import { isLocalMount, PATIENCE } from '../mount-table/silence.ts'
import { type MountRecord, mountRecords } from '../store/mount-record.ts'
import type { Session } from '../store/session.ts'
import { askServed } from '../volume/daemon.ts'
import { silentSource } from '../volume/silence.ts'
import { notPublished, type Stats } from './jobs.ts'

/** In these states the volume, or what it was, is mounted. */
const SHOWN: ReadonlySet<MountState> = new Set(['healthy', 'changed', 'partial', 'stale', 'in progress'])

const SILENT = 'its server or its daemon does not respond'

/**
 * What there is to say of a published volume: nobody who may hang is asked by this process.
 * @throws {CallFailure} NOT_FOUND where modekeep has published nothing
 */
export async function statsOf(session: Session, directory: string): Promise<Stats> {
  using point = openMountPoint(session.host, directory)
  const record = point && mountRecords.read(session, point.path)
  if (!point || !record) throw notPublished(directory)
  // As status and heal do.
  const { state, reason } = await look(session, record, silentSource(session))
  const stats = SHOWN.has(state) ? await readSpace(session, point, record) : { space: undefined, trouble: '' }
  return isUnwell(state) ? { ...stats, trouble: `${state}: ${reason}` } : stats
}

async function readSpace(session: Session, point: MountPoint, record: MountRecord): Promise<Stats> {
  const { inodes, daemons } = session.host
  const { stat, doubt } = await askServed(session, point, record)
  if (doubt !== undefined) return { space: undefined, trouble: unknown(doubt) }
  if (stat === undefined || stat === 'broken') return { space: undefined, trouble: unknown('it does not respond') }
  // A daemon that lives has not been asked, and statfs(2) asks.
  const isAnswered =
    isLocalMount(session.host, stat.mountId, point.path) ||
    (await daemons.answers(point.parent, point.name, PATIENCE, `mount ${stat.mountId}`))
  if (!isAnswered) return { space: undefined, trouble: unknown(SILENT) }
  const root = inodes.openEntry(point.parent, point.name)
  using _ = closing(inodes, root)
  const { bytes, inodes: files } = inodes.space(root)
  return { space: { bytes: texts(bytes), inodes: texts(files) }, trouble: '' }
}

const unknown = (reason: string) => `unknown: ${reason}`

function texts({ total, used, available }: Space): Record<keyof Space, string> {
  return { total: String(total), used: String(used), available: String(available) }
}
