import type { OpenedSource, VolumeKind } from '../filesystem/kind.ts'
import { isDirectory } from '../host/host.ts'
import type { SourceView, View } from '../plan/view.ts'
import type { MountRequest } from '../protocol/request.ts'
import { readMountRecord } from '../state/mount-record.ts'
import { readVolumeRecord, textIdentity, volumeIdentity } from '../state/volume-record.ts'
import { askServed } from './daemon.ts'
import { hasGuard } from './guard-row.ts'
import { lookAt, type MountPoint, missingMountPoint } from './mount-point.ts'
import type { Session } from './session.ts'

/** Looks at everything a mount plan depends on. Call it under the mount's lock. */
export async function observe(
  session: Session,
  request: MountRequest,
  kind: VolumeKind,
  point: MountPoint,
  source: OpenedSource | undefined,
): Promise<View> {
  const { host, config } = session
  const record = readMountRecord(host, config.stateDir, point.path)
  const stat = await askServed(session, point, record)
  // With a record: a call that died between removing kubelet's directory and making a file in its place left neither.
  if (stat === undefined && record === undefined) throw missingMountPoint(point.path)
  const { mounted, target } = lookAt(host, point, stat)
  const isServed = kind.hasDaemon && mounted !== undefined && mounted !== 'broken'
  return {
    mounted,
    isGuarded: !isServed || hasGuard(host, point.path),
    target,
    record,
    walked: record && record.walkGroup >= 0 ? readVolumeRecord(host, config.stateDir, record.volume) : undefined,
    source: kind.persistent ? sourceView(session, request, kind, source) : undefined,
    boot: host.bootId(),
  }
}

function sourceView(
  { host }: Session,
  request: MountRequest,
  { root }: VolumeKind,
  source: OpenedSource | undefined,
): SourceView {
  if (source === undefined) {
    const volume = root === 'text' ? textIdentity(request) : undefined
    return { root: undefined, identity: '', volume, path: request.source, isDirectory: true }
  }
  const { handle, stat, path } = source
  const { device, inode, gid: group } = stat
  // A disk's file system has a root of its own, but another disk under its name is another inode or device.
  const identity = `${device}:${inode}:${stat.born}`
  if (root !== 'source') return { root: undefined, identity, volume: undefined, path, isDirectory: true }
  const volume = volumeIdentity(host, handle, stat)
  return { root: { device, inode, group }, identity: '', volume, path, isDirectory: isDirectory(stat) }
}
