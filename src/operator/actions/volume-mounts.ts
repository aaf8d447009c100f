import { unlessRefused } from '../../host/file-error.ts'
import { closing } from '../../host/host.ts'
import type { IsSilentAt } from '../../mount-table/silence.ts'
import type { MountRecord } from '../../store/mount-record.ts'
import type { Session } from '../../store/session.ts'
import { otherDisk } from '../../store/volume-disk.ts'

/** The mounts of a volume. A mount of a copy, which has the same identity but lies on another disk, is none of them. */
export async function mountsOfVolume(
  session: Session,
  volume: string,
  records: readonly MountRecord[],
  isSilentAt: IsSilentAt,
): Promise<MountRecord[]> {
  const mounts = records.filter((mount) => mount.volume === volume && mount.ended === undefined)
  const isCopy = new Map<number, boolean>()
  for (const { directory, mounted } of mounts) {
    if (mounted === undefined || isCopy.has(mounted.device)) continue
    isCopy.set(mounted.device, !(await isSilentAt(directory)) && liesOnOtherDisk(session, volume, directory))
  }
  return mounts.filter(({ mounted }) => mounted === undefined || !isCopy.get(mounted.device))
}

function liesOnOtherDisk(session: Session, volume: string, directory: string): boolean {
  const { inodes } = session.host
  const other = unlessRefused(() => {
    const handle = inodes.openLinkFree(directory)
    using _ = closing(inodes, handle)
    return otherDisk(session, volume, handle)
  })
  return other !== undefined
}
