import { walkVolume } from '../fs-group/walk-volume.ts'
import { closing } from '../host/host.ts'
import type { PathLookups } from '../mount-table/path-lookups.ts'
import { isLocalPath } from '../mount-table/silence.ts'
import { placeOfVolume } from '../store/find-volume.ts'
import type { Session } from '../store/session.ts'
import { otherDisk } from '../store/volume-disk.ts'
import { volumeIdentity } from '../store/volume-identity.ts'
import { hasJournal, openJournal } from '../store/volume-journal.ts'
import { isTextIdentity, volumeRecords } from '../store/volume-record.ts'
import { openNodeBy } from '../volume/kind/source-path.ts'

/**
 * Makes the journal of a volume that has grown large, or was put back, forget what is gone from the volume, where that can be found and
 * stands still. Call it under the volume's lock.
 * @returns whether it did
 * @throws {Refusal} when the journal cannot be used; {Unresponsive} if a directory of the volume is kept locked
 */
export async function pruneVolume(session: Session, volume: string, lookups: PathLookups): Promise<boolean> {
  const { host } = session
  // A server or a daemon may cease to answer on the way.
  if (isTextIdentity(volume) || !hasJournal(session, volume)) return false
  // Nor may what tells of it now, and this process would wait for that: a walk forgets what is gone there.
  const { source, left } = volumeRecords.readUnlessDamaged(session, volume) ?? {}
  if (source !== undefined && !isLocalPath(host, source)) return false
  // What a restore has left of it need not stay once it is gone.
  const isDue = left !== undefined || isOvergrown(session, volume)
  const place = isDue ? await placeOfVolume(session, volume, lookups) : undefined
  if (place === undefined || !isLocalPath(host, place.path)) return false
  const { handle, stat } = await openNodeBy(lookups, host, place.path)
  using _ = closing(host.inodes, handle)
  if (volumeIdentity(session, handle, stat) !== volume || otherDisk(session, volume, handle)) return false
  // What is mounted below it hides nothing.
  const tree = host.mounts.cloneTree(handle)
  using _tree = closing(host.inodes, tree)
  const about = { volume, source: place.path, known: true, isDisk: false }
  // The notes of one volume's walk are not those of the call.
  const quiet = { ...session, note: () => {} }
  const { isPruned = false } = await walkVolume(quiet, tree, about, { do: 'prune' }, () => {})
  return isPruned
}

function isOvergrown(session: Session, volume: string): boolean {
  using journal = openJournal(session, volume, false)
  return journal.isOvergrown(0)
}
