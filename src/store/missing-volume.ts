import { deferClose, errorCode, isDirectory } from '../host/host.ts'
import type { PathLookups } from '../mount-table/path-lookups.ts'
import type { Session } from './session.ts'
import { explainOtherSource } from './volume-disk.ts'
import { isTextVolume } from './volume-id.ts'

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
export async function explainAbsence(
  session: Session,
  volume: string,
  source: string,
  lookups: PathLookups,
): Promise<VolumeAbsence> {
  const found = isTextVolume(volume)
    ? 'unmounted'
    : ((await inspectSource(session, volume, source, lookups)) ?? 'missing')
  if (found === 'unmounted')
    return { text: `${source} is not mounted: mount it`, alternative: 'its next mount uses the records' }
  const alternative = `if it is deleted for good, "modekeep gc --forget ${volume}" removes its record`
  return found === 'another'
    ? { text: `${source} is another one now: put the former one back`, alternative }
    : { text: `${source} is missing: put it back or mount it`, alternative }
}

/** Returns undefined if nothing is at the path, or it cannot be opened. */
async function inspectSource(
  session: Session,
  volume: string,
  source: string,
  lookups: PathLookups,
): Promise<'another' | 'unmounted' | undefined> {
  const { inodes } = session.host
  try {
    const handle = await lookups.open(source)
    if (handle === undefined) return undefined
    using _ = deferClose(inodes, handle)
    return isDirectory(inodes.stat(handle)) || explainOtherSource(session, volume, handle) ? 'another' : 'unmounted'
  } catch (error) {
    if (errorCode(error) === undefined) throw error
    return undefined
  }
}
