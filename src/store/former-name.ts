import { tolerateSystemErrors } from '../host/file-error.ts'
import { deferClose, errorCode, type Handle, isDirectory } from '../host/host.ts'
import type { PathLookups } from '../mount-table/path-lookups.ts'
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
  lookups: PathLookups,
): Promise<NameNotice | undefined> {
  if (isTextIdentity(volume)) return undefined
  if (!source.startsWith('/')) return undefined
  const at = await openIfThere(lookups, source)
  if (at === 'silent') return undefined
  using _ = deferClose(session.host.inodes, at)
  const found = at && tolerateSystemErrors(() => lookAt(session, volume, at))
  if (found !== undefined) return noticeOf(volume, source, found)
  // A disk or an image is seen where it is mounted; the mounts of directories are many, and show nothing else.
  if (at !== undefined && tolerateSystemErrors(() => isDirectory(session.host.inodes.stat(at)))) return undefined
  for (const { directory } of listMountRecords(session).filter((mount) => mount.source === source)) {
    const mounted = await openIfThere(lookups, directory)
    if (mounted === 'silent') return undefined
    using _mounted = deferClose(session.host.inodes, mounted)
    const there = mounted && tolerateSystemErrors(() => lookAt(session, volume, mounted))
    if (there !== undefined) return noticeOf(volume, directory, there)
  }
  return undefined
}

async function openIfThere(lookups: PathLookups, path: string): Promise<Handle | 'silent' | undefined> {
  try {
    return (await lookups.open(path)) ?? 'silent'
  } catch (error) {
    if (errorCode(error) === undefined) throw error
    return undefined
  }
}

type Found = Names & { used: string; isUsed: boolean }

/** Undefined where another root is there. The file system is asked for its name last: that may wait for it. */
function lookAt(session: Session, volume: string, handle: Handle): Found | undefined {
  const stat = session.host.inodes.stat(handle)
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
