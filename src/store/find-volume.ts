import { errorCode, type Host } from '../host/host.ts'
import { type MountRow, parseMountinfo } from '../mount-table/mountinfo.ts'
import { Refusal } from '../refusal/refusal.ts'
import { parseSource } from '../request/source.ts'
import { unlessDamaged } from './json-record.ts'
import { listMountRecords } from './mount-record.ts'
import type { Session } from './session.ts'
import { hasJournal } from './volume-journal.ts'
import { hasVolumeRecord, isTextIdentity, readVolumeRecord, textIdentity, volumeIdentity } from './volume-record.ts'

/**
 * Where a volume is to be found now: where it was last, or at any mount that shows it and maps no groups.
 * @returns an absolute path that leads to the volume's root
 * @throws {Refusal} where there is none
 */
export function findVolume(session: Session, volume: string): string {
  const { host, config } = session
  const found = placeOfVolume(session, volume)
  if (found !== undefined) return found
  const [source] = sourcesOf(session, volume)
  if (source !== undefined) {
    throw new Refusal(
      `volume ${volume} was ${source}, which is not there or is another one now: put it back or mount it, then call this again`,
    )
  }
  throw new Refusal(
    hasJournal(session, volume) || hasVolumeRecord(host, config.stateDir, volume)
      ? `where volume ${volume} was cannot be read any more: give its directory instead, "modekeep restore DIR"`
      : `nothing is recorded of volume ${volume}: "modekeep status" names those that are`,
  )
}

/** The same, undefined where it is nowhere. */
export function placeOfVolume(session: Session, volume: string): string | undefined {
  const { host } = session
  const known = sourcesOf(session, volume).find((path) => leadsTo(host, path, volume))
  if (known !== undefined) return known
  const isReadOnly = ({ options }: MountRow) => Number(options.includes('ro'))
  return parseMountinfo(host.mounts.table())
    .filter((row) => !row.options.includes('idmapped'))
    .sort((one, other) => isReadOnly(one) - isReadOnly(other))
    .find((row) => shows(host, row, volume))?.mountPoint
}

/** Where it was, as far as records tell. */
function sourcesOf({ host, config }: Session, volume: string): string[] {
  const record = unlessDamaged(() => readVolumeRecord(host, config.stateDir, volume))
  const mounts = listMountRecords(host, config.stateDir).filter((mount) => mount.volume === volume)
  return [...(record ? [record] : []), ...mounts].flatMap(({ source }) => source ?? [])
}

/** Whether a volume's root can be reached by the path it had; what is there is not asked whether it answers. */
function leadsTo(host: Host, path: string, volume: string): boolean {
  if (isTextIdentity(volume)) return false
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

const NFS = ['nfs', 'nfs4']

/**
 * A server's volume is named by the text of its source, which the mount table has too. The kernel may call either version
 * of NFS the other; of any other file system the text is what somebody liked to write there.
 */
function shows(host: Host, { fsType, source, root, mountPoint, device }: MountRow, volume: string): boolean {
  if (!isTextIdentity(volume)) return leadsTo(host, mountPoint, volume)
  const kinds = NFS.includes(fsType) ? NFS : [fsType]
  const isNamed = kinds.some((kind) => textIdentity({ fsType: kind, source: parseSource(source) }) === volume)
  return isNamed && root === '/' && isOnTop(host, mountPoint, device)
}

/** Nothing else is mounted over it. */
function isOnTop(host: Host, mountPoint: string, device: string): boolean {
  try {
    const handle = host.inodes.openLinkFree(mountPoint)
    try {
      const stat = host.inodes.statMountPoint(handle)
      return stat.mountRoot && `${Math.floor(stat.device / 2 ** 20)}:${stat.device % 2 ** 20}` === device
    } finally {
      host.inodes.close(handle)
    }
  } catch (error) {
    if (errorCode(error) === undefined) throw error
    return false
  }
}
