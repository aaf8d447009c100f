import { closing } from '../host/host.ts'
import { prune } from '../ownership/walks.ts'
import { placeOfVolume } from '../store/find-volume.ts'
import type { Session } from '../store/session.ts'
import { hasJournal, openJournal } from '../store/volume-journal.ts'
import { isTextIdentity, volumeIdentity } from '../store/volume-record.ts'
import { openNode } from '../volume/kind/source-path.ts'

/**
 * Makes the journal of a volume that has grown large forget what is gone from the volume, where that can be found and
 * stands still. Call it under the volume's lock.
 * @returns whether it did
 * @throws {Refusal} when the journal cannot be used
 */
export async function pruneVolume(session: Session, volume: string): Promise<boolean> {
  const { host } = session
  // A server or a daemon may not answer.
  if (isTextIdentity(volume) || !hasJournal(session, volume)) return false
  using journal = openJournal(session, volume, false)
  const path = journal.isOvergrown(0) ? placeOfVolume(session, volume) : undefined
  if (path === undefined) return false
  const { handle, stat } = openNode(host, path)
  using _ = closing(host.inodes, handle)
  if (volumeIdentity(host, handle, stat) !== volume) return false
  // What is mounted below it hides nothing.
  const tree = host.mounts.cloneTree(handle)
  using _tree = closing(host.inodes, tree)
  return await prune(host.inodes, tree, journal)
}
