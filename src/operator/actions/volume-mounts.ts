import { deferClose, errorCode } from '../../host/host.ts'
import type { PathLookups } from '../../mount-table/path-lookups.ts'
import type { MountRecord } from '../../store/mount-record.ts'
import type { Session } from '../../store/session.ts'
import { explainOtherDisk } from '../../store/volume-disk.ts'

/** Finds the mounts of a volume. A copy on another disk has the same identity, but its mounts are excluded. */
export async function findVolumeMounts(
  session: Session,
  volume: string,
  records: readonly MountRecord[],
  lookups: PathLookups,
): Promise<MountRecord[]> {
  const mounts = records.filter((mount) => mount.volume === volume && mount.ended === undefined)
  const isCopy = new Map<number, boolean>()
  for (const { directory, mounted } of mounts) {
    if (mounted === undefined || isCopy.has(mounted.device)) continue
    isCopy.set(mounted.device, await isOnOtherDisk(session, volume, directory, lookups))
  }
  return mounts.filter(({ mounted }) => mounted === undefined || !isCopy.get(mounted.device))
}

async function isOnOtherDisk(
  session: Session,
  volume: string,
  directory: string,
  lookups: PathLookups,
): Promise<boolean> {
  try {
    const handle = await lookups.open(directory)
    using _ = deferClose(session.host.inodes, handle)
    return handle !== undefined && explainOtherDisk(session, volume, handle) !== undefined
  } catch (error) {
    if (errorCode(error) === undefined) throw error
    return false
  }
}
