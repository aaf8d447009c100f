import { errorCode, type Host } from '../host/host.ts'
import { type MountRow, parseMountinfo } from '../mount-table/mountinfo.ts'
import { Refusal } from '../protocol/refusal.ts'
import { listMountRecords } from '../state/mount-record.ts'
import { readVolumeRecord, textIdentity, volumeIdentity } from '../state/volume-record.ts'
import type { Session } from './session.ts'

/**
 * Where a volume is to be found now: where it was last, or at any mount that shows it and maps no groups.
 * @returns an absolute path that leads to the volume's root
 * @throws {Refusal} where there is none
 */
export function findVolume(session: Session, volume: string): string {
  const { host, config } = session
  const record = readVolumeRecord(host, config.stateDir, volume)
  const records = listMountRecords(host, config.stateDir).filter((mount) => mount.volume === volume)
  const isReadOnly = ({ options }: MountRow) => Number(options.includes('ro'))
  const rows = parseMountinfo(host.mounts.table())
    .filter((row) => !row.options.includes('idmapped'))
    .sort((one, other) => isReadOnly(one) - isReadOnly(other))
  const known = [record?.source, ...records.map(({ source }) => source)]
  const found =
    known.find((path) => path !== undefined && leadsTo(host, path, volume)) ??
    rows.find((row) => shows(host, row, volume))?.mountPoint
  if (found !== undefined) return found
  const source = record?.source ?? records[0]?.source
  throw new Refusal(
    source === undefined
      ? `nothing is recorded of volume ${volume}: "modekeep status" names those that are`
      : `volume ${volume} was ${source}, which is not there or is another one now: put it back or mount it, then call this again`,
  )
}

/** Whether a volume's root can be reached by the path it had; what is there is not asked whether it answers. */
export function leadsTo(host: Host, path: string, volume: string): boolean {
  if (!path.startsWith('/') || volume.startsWith('text-')) return false
  try {
    const handle = host.inodes.openLinkFree(path)
    try {
      const stat = host.inodes.statMountPoint(handle)
      const [inode, born] = [stat.inode.toString(16), stat.born.toString(16)]
      // The file system is asked for its name last: that may have to wait for it.
      return volume.endsWith(`-${inode}-${born}`) && volumeIdentity(host, handle, stat) === volume
    } finally {
      host.inodes.close(handle)
    }
  } catch (error) {
    if (errorCode(error) === undefined) throw error
    return false
  }
}

/** A server's volume is named by the text of its source, which the mount table has too. */
function shows(host: Host, { fsType, source, root, mountPoint }: MountRow, volume: string): boolean {
  if (!volume.startsWith('text-')) return leadsTo(host, mountPoint, volume)
  const kinds = new Set([fsType, 'nfs', 'nfs4'])
  return root === '/' && [...kinds].some((kind) => textIdentity({ fsType: kind, source, subPath: '' }) === volume)
}
