import { walkVolume } from '../fs-group/walk-volume.ts'
import { deferClose } from '../host/host.ts'
import { isLocalPath, type PathLookups } from '../mount-table/responsiveness.ts'
import { locateVolume } from '../store/find-volume.ts'
import type { Session } from '../store/session.ts'
import { explainOtherDisk } from '../store/volume-disk.ts'
import { isTextVolume } from '../store/volume-id.ts'
import { resolveVolumeIdentity } from '../store/volume-identity.ts'
import { hasJournal, openJournal } from '../store/volume-journal.ts'
import { volumeRecords } from '../store/volume-record.ts'
import { openNodeBy } from '../volume/kind/source-path.ts'

/**
 * Removes the entries of deleted inodes from the journal of a volume, if the journal has grown large or the volume was
 * restored. The volume must be found and not change during the walk. Must be called under the volume's lock.
 * @returns whether the journal was pruned
 * @throws {Refusal} if the journal cannot be used; {Unresponsive} if a directory of the volume is kept locked
 */
export async function pruneVolume(session: Session, volume: string, lookups: PathLookups): Promise<boolean> {
  const { host } = session
  // A server or a daemon may stop responding during the walk.
  if (isTextVolume(volume) || !hasJournal(session, volume)) return false
  // This process would wait for an unresponsive source. Walks prune the journals of such volumes.
  const { source, left } = volumeRecords.readUnlessDamaged(session, volume) ?? {}
  if (source !== undefined && !isLocalPath(host, source)) return false
  // Entries that a restore had to keep are removed once their inodes are deleted.
  const isDue = left !== undefined || isOvergrown(session, volume)
  const place = isDue ? await locateVolume(session, volume, lookups) : undefined
  if (place === undefined || !isLocalPath(host, place.path)) return false
  const { handle, stat } = await openNodeBy(lookups, host, place.path)
  using _ = deferClose(host.inodes, handle)
  if (resolveVolumeIdentity(session, handle, stat) !== volume || explainOtherDisk(session, volume, handle)) return false
  // The clone excludes mounts below the volume, so they hide no inode.
  const tree = host.mounts.cloneTree(handle)
  using _tree = deferClose(host.inodes, tree)
  const about = { volume, source: place.path, known: true, isDisk: false }
  // The notes of one volume's walk must not appear as the call's.
  const quiet = { ...session, note: () => {} }
  const { isPruned = false } = await walkVolume(quiet, tree, about, { do: 'prune' }, () => {})
  return isPruned
}

function isOvergrown(session: Session, volume: string): boolean {
  using journal = openJournal(session, volume, false)
  return journal.isOvergrown(0)
}
