import { unlessRefused } from '../host/file-error.ts'
import { closing, type Handle, type Host, type Stat } from '../host/host.ts'
import { type MountRow, parseMountinfo } from '../mount-table/mountinfo.ts'
import { deviceName } from '../mount-table/tree-location.ts'
import { Refusal } from '../refusal/refusal.ts'
import { parseSource } from '../request/source.ts'
import { listMountRecords } from './mount-record.ts'
import type { Session } from './session.ts'
import { hasJournal } from './volume-journal.ts'
import { isTextIdentity, textIdentity, volumeIdentity, volumeRecords } from './volume-record.ts'

/**
 * Where a volume is to be found now: where it was last, or at any mount that shows it and maps no groups.
 * @returns an absolute path that leads to the volume's root
 * @throws {Refusal} where there is none
 */
export function findVolume(session: Session, volume: string): string {
  const found = placeOfVolume(session, volume)
  if (found !== undefined) return found
  const [source] = sourcesOf(session, volume)
  if (source !== undefined) {
    throw new Refusal(
      `volume ${volume} was ${source}, which is missing or another one now: put it back or mount it, then call this again`,
    )
  }
  throw new Refusal(
    hasJournal(session, volume) || volumeRecords.has(session, volume)
      ? `the path of volume ${volume} is not recorded or cannot be read: give its directory instead, "modekeep restore DIR"`
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
function sourcesOf(session: Session, volume: string): string[] {
  const record = volumeRecords.readUnlessDamaged(session, volume)
  const mounts = listMountRecords(session).filter((mount) => mount.volume === volume)
  return [...(record ? [record] : []), ...mounts].flatMap(({ source }) => source ?? [])
}

/** Whether a volume's root can be reached by the path it had. */
function leadsTo(host: Host, path: string, volume: string): boolean {
  if (isTextIdentity(volume)) return false
  return isAt(host, path, (handle, stat) => {
    const [inode, born] = [stat.inode.toString(16), stat.born.toString(16)]
    // The file system is asked for its name last: that may wait for it. A copy-up changes an overlay's birth times.
    const isLike = [born, '0'].some((time) => volume.endsWith(`-${inode}-${time}`))
    return isLike && volumeIdentity(host, handle, host.inodes.stat(handle)) === volume
  })
}

const NFS = ['nfs', 'nfs4']

/**
 * A server's volume is named by the text of its source, which the mount table has too. The kernel may call either
 * version of NFS the other; of any other file system the text is what somebody liked to write there.
 */
function shows(host: Host, { fsType, source, root, mountPoint, device }: MountRow, volume: string): boolean {
  if (!isTextIdentity(volume)) return leadsTo(host, mountPoint, volume)
  const kinds = NFS.includes(fsType) ? NFS : [fsType]
  const isNamed = kinds.some((kind) => textIdentity({ fsType: kind, source: parseSource(source) }) === volume)
  // Nothing else is mounted over it.
  const isOnTop = ({ mountRoot, device: at }: Stat) => mountRoot && deviceName(at) === device
  return isNamed && root === '/' && isAt(host, mountPoint, (_, stat) => isOnTop(stat))
}

/** Looks at what a path leads to, which is not asked whether it answers. */
function isAt(host: Host, path: string, isIt: (handle: Handle, stat: Stat) => boolean): boolean {
  const isThere = unlessRefused(() => {
    const handle = host.inodes.openLinkFree(path)
    using _ = closing(host.inodes, handle)
    return isIt(handle, host.inodes.statMountPoint(handle))
  })
  return isThere ?? false
}
