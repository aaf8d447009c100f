import type { OpenedSource } from '../filesystem/kind.ts'
import { DIRECTORY, FILE_TYPE } from '../host/host.ts'
import type { SourceView, View } from '../plan/view.ts'
import { readMountRecord } from '../state/mount-record.ts'
import { readVolumeRecord, volumeIdentity } from '../state/volume-record.ts'
import { askPoint, lookAt, type MountPoint, targetOf } from './mount-point.ts'
import type { Session } from './session.ts'

/** Looks at everything a mount plan depends on. Call it under the mount's lock. */
export function observe(session: Session, point: MountPoint, source: OpenedSource | undefined): View {
  const { host, config } = session
  const record = readMountRecord(host, config.stateDir, point.path)
  const stat = askPoint(host, point)
  // A call that died between removing kubelet's directory and making a file in its place left neither.
  const isGone = stat === undefined && record !== undefined
  const mounted = isGone ? undefined : lookAt(host, point, stat)
  return {
    mounted,
    target: mounted === undefined && stat !== 'broken' ? targetOf(point, stat) : 'directory',
    record,
    walked: record && record.walkGroup >= 0 ? readVolumeRecord(host, config.stateDir, record.volume) : undefined,
    source: source && sourceView(session, source),
    boot: host.bootId(),
  }
}

function sourceView({ host }: Session, { handle, stat, path }: OpenedSource): SourceView {
  return {
    device: stat.device,
    inode: stat.inode,
    volume: volumeIdentity(host, handle, stat),
    path,
    group: stat.gid,
    isDirectory: (stat.mode & FILE_TYPE) === DIRECTORY,
  }
}
