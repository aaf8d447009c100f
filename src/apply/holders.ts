import { isOurs } from '../plan/mount.ts'
import { listMountRecords, type MountRecord } from '../state/mount-record.ts'
import { lookAt, openMountPoint } from './mount-point.ts'
import type { Session } from './session.ts'

/** The live mounts of a volume, the one at `except` left out. A record whose mount is gone does not count. */
export function holdersOf({ host, config }: Session, volume: string, except: string): MountRecord[] {
  const boot = host.bootId()
  return listMountRecords(host, config.stateDir).filter((record) => {
    if (record.volume !== volume || record.directory === except) return false
    const point = openMountPoint(host, record.directory)
    if (point === undefined) return false
    try {
      return isOurs(record, { mounted: lookAt(host, point), record, source: undefined, boot })
    } catch {
      return false
    } finally {
      host.inodes.close(point.parent)
    }
  })
}
