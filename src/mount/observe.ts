import { hasGuard } from '../mount-table/layers.ts'
import { lookAt, type MountPoint, missingMountPoint } from '../mount-table/mount-point.ts'
import type { MountRequest } from '../request/mount-request.ts'
import { unlessDamaged } from '../store/json-record.ts'
import { type MountRecord, readMountRecord } from '../store/mount-record.ts'
import type { Session } from '../store/session.ts'
import { readVolumeRecord, type VolumeRecord } from '../store/volume-record.ts'
import { askServed } from '../volume/daemon.ts'
import type { OpenedSource, VolumeKind } from '../volume/kind/kind.ts'
import { sourceView } from '../volume/source-view.ts'
import type { View } from './view.ts'

/** Looks at everything a mount plan depends on. Call it under the mount's lock. */
export async function observe(
  session: Session,
  request: MountRequest,
  kind: VolumeKind,
  point: MountPoint,
  source: OpenedSource | undefined,
): Promise<View> {
  const { host, config } = session
  const record = unlessDamaged(() => readMountRecord(host, config.stateDir, point.path))
  const { stat, doubt } = await askServed(session, point, record)
  if (doubt !== undefined) session.warn(doubt)
  // With a record: a call that crashed between removing kubelet's directory and making a file in its place left neither.
  if (stat === undefined && record === undefined) throw missingMountPoint(point.path)
  const { mounted, target } = lookAt(host, point, stat)
  const isServed = kind.hasDaemon === true && mounted !== undefined && mounted !== 'broken'
  return {
    mounted,
    needsGuard: isServed && !hasGuard(host, point.path),
    target,
    record,
    walked: record && walkedVolume(session, record),
    source: kind.persistent ? sourceView(session, request, kind, source) : undefined,
    boot: host.bootId(),
    doubt,
  }
}

function walkedVolume({ host, config }: Session, { given, volume }: MountRecord): VolumeRecord | undefined {
  if (given.by !== 'walk' || volume === undefined) return undefined
  return unlessDamaged(() => readVolumeRecord(host, config.stateDir, volume))
}
