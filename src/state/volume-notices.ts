import { deferHandleClose, getErrno, type Handle, type Host, isDirectory } from '../kernel/host.ts'
import type { PathLookups } from '../kernel/mount-table/responsiveness.ts'
import { tolerateSystemErrors } from '../kernel/system-error.ts'
import { listReadableMountRecords } from './mount-record.ts'
import type { Session } from './session.ts'
import { explainOtherSourceDisk } from './volume-disk.ts'
import { formatVolumeId, isSameVolumeRoot, isTextVolumeId, parseRootVolumeId } from './volume-id.ts'
import { computeVolumeNames, isVolumeRecorded, resolveVolumeIdentity, type VolumeNames } from './volume-identity.ts'
import type { VolumeRecord } from './volume-record.ts'

/** Reports that a volume is recorded under another name than this kernel gives it. */
export interface VolumeNameNotice {
  /** `used`: modekeep uses these records although the name differs. */
  state: 'used' | 'passed over' | 'unknown here'
  text: string
}

/**
 * Checks the recorded source of a volume, and the mounts of that source.
 * @returns undefined if this kernel gives the volume the same name, or the volume is not there
 */
export async function findVolumeNameNotice(
  session: Session,
  { volume, source }: Pick<VolumeRecord, 'volume' | 'source'>,
  lookups: PathLookups,
): Promise<VolumeNameNotice | undefined> {
  if (isTextVolumeId(volume) || !source.startsWith('/')) return undefined
  const { inodes } = session.host
  const inspect = (path: string) =>
    inspectPath(session.host, lookups, path, (handle) => {
      const names = tolerateSystemErrors(() => inspectVolumeNames(session, volume, handle))
      return names ?? (isDirectory(inodes.stat(handle)) ? 'directory' : undefined)
    })
  const at = await inspect(source)
  // The volume of a disk or an image is visible only where it is mounted. Mounts of a directory can be many and show
  // nothing else, so they are not checked.
  if (at === 'silent' || at === 'directory') return undefined
  if (at !== undefined) return formatVolumeNameNotice(volume, source, at)
  for (const { directory } of listReadableMountRecords(session).filter((mount) => mount.source === source)) {
    const mounted = await inspect(directory)
    if (mounted === 'silent') return undefined
    if (mounted !== undefined && mounted !== 'directory') return formatVolumeNameNotice(volume, directory, mounted)
  }
  return undefined
}

/**
 * Opens a path and inspects what is there.
 * @returns undefined if nothing is there, or if it cannot be opened or inspected
 */
export async function inspectPath<T>(
  { inodes }: Host,
  lookups: PathLookups,
  path: string,
  inspect: (handle: Handle) => T,
): Promise<T | 'silent' | undefined> {
  try {
    const handle = await lookups.open(path)
    if (handle === undefined) return 'silent'
    using _ = deferHandleClose(inodes, handle)
    return inspect(handle)
  } catch (error) {
    if (getErrno(error) === undefined) throw error
    return undefined
  }
}

type VolumeNamesAtPath = VolumeNames & { used: string; isUsed: boolean }

/** Returns undefined if the handle is not the volume's root. Reads the file system's id last, because that may block. */
function inspectVolumeNames(session: Session, volume: string, handle: Handle): VolumeNamesAtPath | undefined {
  const stat = session.host.inodes.stat(handle)
  if (stat.born === 0n || !isSameVolumeRoot(parseRootVolumeId(volume), stat)) return undefined
  const used = resolveVolumeIdentity(session, handle, stat)
  return { ...computeVolumeNames(session.host, handle, stat), used, isUsed: isVolumeRecorded(session, used) }
}

/** Formats a notice without access to the node. */
function formatVolumeNameNotice(
  volume: string,
  path: string,
  { now: id, used, isUsed }: VolumeNamesAtPath,
): VolumeNameNotice | undefined {
  const now = formatVolumeId(id)
  if (volume === now) return undefined
  if (volume === used) {
    return {
      state: 'used',
      text: `its records have an older name of it (${now} now), and are used under that until it is restored`,
    }
  }
  const isByUuid = parseRootVolumeId(volume)?.kind === 'uuid'
  if (isByUuid && id.kind === 'fsid') {
    return {
      state: 'unknown here',
      text: `this kernel calls ${path} ${now}, so these records are not used until a kernel runs that reports its UUID: start that before the volume is walked here, and "modekeep restore ${volume}" before a kernel goes back`,
    }
  }
  if (isByUuid || !isUsed) return undefined
  return {
    state: 'passed over',
    text: `${path} was walked again as ${used}, so these older records are not used: "modekeep restore ${used}", then "modekeep restore ${volume}"`,
  }
}

/** Explanation why no path of the node leads to a volume. */
export interface VolumeAbsence {
  /** Reason and remedy: a main clause that "then …" may follow. */
  text: string
  /** Use of the records if no path leads to the volume again. */
  alternative: string
}

/**
 * Distinguishes an image, a disk or a server's export that is simply not mounted from a source that is deleted or
 * replaced. Call it only if no path leads to the volume and the source's server responds.
 * @param source the recorded source of the volume
 */
export async function explainVolumeAbsence(
  session: Session,
  volume: string,
  source: string,
  lookups: PathLookups,
): Promise<VolumeAbsence> {
  const { host } = session
  const found = isTextVolumeId(volume)
    ? 'unmounted'
    : await inspectPath(host, lookups, source, (handle) =>
        isDirectory(host.inodes.stat(handle)) || explainOtherSourceDisk(session, volume, handle)
          ? 'another'
          : 'unmounted',
      )
  if (found === 'unmounted')
    return { text: `${source} is not mounted: mount it`, alternative: 'its next mount uses the records' }
  const alternative = `if it is deleted for good, "modekeep gc --forget ${volume}" removes its record`
  return found === 'another'
    ? { text: `${source} is another one now: put the former one back`, alternative }
    : { text: `${source} is missing: put it back or mount it`, alternative }
}
