import type { Handle, Stat } from '../host/host.ts'
import type { View } from '../plan/view.ts'
import { readMountRecord } from '../state/mount-record.ts'
import { readVolumeRecord, volumeIdentity } from '../state/volume-record.ts'
import { lookAt, type MountPoint } from './mount-point.ts'
import type { Session } from './session.ts'

/** Looks at everything a mount plan depends on. Call it under the mount's lock. */
export function observe(
  { host, config }: Session,
  point: MountPoint,
  source: { handle: Handle; stat: Stat } | undefined,
): View {
  const record = readMountRecord(host, config.stateDir, point.path)
  return {
    mounted: lookAt(host, point),
    record,
    walked: record && record.walkGroup >= 0 ? readVolumeRecord(host, config.stateDir, record.volume) : undefined,
    source: source && {
      device: source.stat.device,
      inode: source.stat.inode,
      volume: volumeIdentity(host, source.handle, source.stat),
    },
    boot: host.bootId(),
  }
}
