import { isOurs } from '../plan/mount.ts'
import { Refusal } from '../protocol/refusal.ts'
import { listMountRecords, type MountRecord } from '../state/mount-record.ts'
import { lookAt, openMountPoint } from './mount-point.ts'
import type { Session } from './session.ts'

/** Whether a mount shows a volume or a part of it, or the volume is a part of what it shows. */
export function shows(mount: MountRecord, volume: { volume: string; source: string }): boolean {
  const [one, other] = [`${mount.source}/`, `${volume.source}/`]
  return mount.volume === volume.volume || one.startsWith(other) || other.startsWith(one)
}

/** The mounts that are really there, the one at `except` left out. What cannot be looked at counts as there. */
export function liveMounts({ host, config }: Session, except: string): MountRecord[] {
  const boot = host.bootId()
  return listMountRecords(host, config.stateDir).filter((record) => {
    if (record.directory === except) return false
    const point = openMountPoint(host, record.directory)
    if (point === undefined) return false
    try {
      return isOurs(record, { mounted: lookAt(host, point), record, source: undefined, boot, walked: undefined })
    } catch (error) {
      // There is no directory (any more) that could be mounted on.
      return !(error instanceof Refusal)
    } finally {
      host.inodes.close(point.parent)
    }
  })
}
