import { unlessRefused } from '../host/file-error.ts'
import { closing, isDirectory } from '../host/host.ts'
import type { IsSilentAt } from '../mount-table/silence.ts'
import { listMountRecords } from './mount-record.ts'
import type { Session } from './session.ts'
import { isRecorded, type Names, namesOf, volumeIdentity } from './volume-identity.ts'
import { isTextIdentity, type VolumeRecord } from './volume-record.ts'

/** Reports records of a volume under a name that this kernel does not give it. */
export interface NameNotice {
  /** `used`: they are the volume's records all the same. */
  state: 'used' | 'passed over' | 'unknown here'
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

type Found = Names & { used: string; isUsed: boolean }

/** Undefined where another root is there. The file system is asked for its name last: that may wait for it. */
function lookAt(session: Session, volume: string, path: string): Found | undefined {
  const { inodes } = session.host
  const handle = inodes.openLinkFree(path)
  using _ = closing(inodes, handle)
  const stat = inodes.stat(handle)
  if (stat.born === 0n || !volume.endsWith(`-${stat.inode.toString(16)}-${stat.born.toString(16)}`)) return undefined
  const used = volumeIdentity(session, handle, stat)
  return { ...namesOf(session.host, handle, stat), used, isUsed: isRecorded(session, used) }
}

/** Pure. */
function noticeOf(volume: string, path: string, { now, used, isUsed }: Found): NameNotice | undefined {
  if (volume === now) return undefined
  if (volume === used) {
    return {
      state: 'used',
      text: `its records have an older name of it (${now} now), and are used under that until it is restored`,
    }
  }
  // A UUID has no dot.
  if (!volume.includes('.') && now.includes('.')) {
    return {
      state: 'unknown here',
      text: `this kernel calls ${path} ${now}, so these records are not used until a kernel runs that reports its UUID: start that before the volume is walked here, and "modekeep restore ${volume}" before a kernel goes back`,
    }
  }
  if (!volume.includes('.') || !isUsed) return undefined
  return {
    state: 'passed over',
    text: `${path} was walked again as ${used}, so these older records are not used: "modekeep restore ${used}", then "modekeep restore ${volume}"`,
  }
}
