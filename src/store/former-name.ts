import { unlessRefused } from '../host/file-error.ts'
import { closing, isDirectory } from '../host/host.ts'
import type { IsSilentAt } from '../mount-table/silence.ts'
import { listMountRecords } from './mount-record.ts'
import type { Session } from './session.ts'
import { isNamedByDevice, type Names, namesOf, volumeIdentity } from './volume-identity.ts'
import { isTextIdentity, type VolumeRecord } from './volume-record.ts'

/** That a volume's records stand under a name of another kernel's. */
export interface NameNotice {
  /** `used`: they are those of the volume all the same. */
  state: 'used' | 'passed over' | 'unknown here'
  /** It has the number of a device: another boot may give that to another one. */
  isFleeting: boolean
  text: string
}

/** Looks where the volume was, and at the mounts of that. @returns undefined where the name is this kernel's, or the volume elsewhere */
export async function nameNotice(
  session: Session,
  { volume, source }: Pick<VolumeRecord, 'volume' | 'source'>,
  isSilentAt: IsSilentAt,
): Promise<NameNotice | undefined> {
  if (isTextIdentity(volume)) return undefined
  for (const path of placesOf(session, source)) {
    // Before the next place, for which this one is looked at again.
    if (await isSilentAt(path)) return undefined
    const found = unlessRefused(() => lookAt(session, volume, path))
    if (found !== undefined) return noticeOf(volume, path, found)
  }
  return undefined
}

/** A disk or an image is seen where it is mounted; the mounts of directories are many, and show nothing else. */
function* placesOf(session: Session, source: string): Generator<string> {
  const { host } = session
  if (!source.startsWith('/')) return
  yield source
  const isOfDirectory = unlessRefused(() => {
    const handle = host.inodes.openLinkFree(source)
    using _ = closing(host.inodes, handle)
    return isDirectory(host.inodes.stat(handle))
  })
  if (isOfDirectory) return
  for (const mount of listMountRecords(session)) if (mount.source === source) yield mount.directory
}

type Found = Names & { used: string }

/** Undefined where another root is there. The file system is asked for its name last: that may wait for it. */
function lookAt(session: Session, volume: string, path: string): Found | undefined {
  const { inodes } = session.host
  const handle = inodes.openLinkFree(path)
  using _ = closing(inodes, handle)
  const stat = inodes.stat(handle)
  if (stat.born === 0n || !volume.endsWith(`-${stat.inode.toString(16)}-${stat.born.toString(16)}`)) return undefined
  return { ...namesOf(session.host, handle, stat), used: volumeIdentity(session, handle, stat) }
}

/** Pure. */
function noticeOf(volume: string, path: string, { now, former, used }: Found): NameNotice | undefined {
  if (volume === now) return undefined
  if (volume === former) {
    const isFleeting = isNamedByDevice(volume)
    const until = isFleeting ? ', or until a reboot gives its disk another number' : ''
    return volume === used
      ? {
          state: 'used',
          isFleeting,
          text: `its records have the name that kernels before 6.9 give it (${now} since), and are used under that until it is put back${until}`,
        }
      : {
          state: 'passed over',
          isFleeting,
          text: `${path} was walked again as ${now}, its name since Linux 6.9, so these records of before the upgrade are not used: "modekeep restore ${now}", then "modekeep restore ${volume}"`,
        }
  }
  // A UUID has no dot.
  if (volume.includes('.') || !now.includes('.')) return undefined
  return {
    state: 'unknown here',
    isFleeting: false,
    text: `this kernel calls ${path} ${now}, so these records are not used until Linux 6.9 or newer runs: start that before the volume is walked here, and "modekeep restore ${volume}" before a kernel goes back`,
  }
}
