import { closing, errorCode, type Handle, type Host, type MountFlags } from '../host/host.ts'
import type { WalkReport } from '../ownership/walk/report.ts'
import { quoted, Refusal } from '../refusal/refusal.ts'
import type { Session } from '../store/session.ts'
import { isTextIdentity, volumeIdentity } from '../store/volume-record.ts'
import { holdsOwnRecords, openNodeDirectory } from '../volume/kind/source-path.ts'
import { ownVolume, type VolumeOrder } from './own-volume.ts'

/** What an operator asks for a directory. No mount directory and no pod have a part in it. */
export type ByHandOrder = Pick<VolumeOrder, 'group' | 'access' | 'policy'>

/** A directory of the node as a volume, through a detached mount of its own that shows what a pod would see. */
export interface VolumeByHand {
  directory: string
  volume: string
  tree: Handle
}

/**
 * Opens the directory that an operator names: allowedSources binds pods, not root. Close `tree` when done.
 * @param directory absolute and normal
 * @param flags of the detached mount
 * @param known the volume that it was found to be
 * @throws {Refusal} for what is no directory, has a link in its path, is another volume, or holds modekeep's own records
 */
export function openByHand(
  { host, config }: Session,
  directory: string,
  flags: MountFlags,
  known?: string,
): VolumeByHand {
  if (holdsOwnRecords(directory, config)) {
    throw new Refusal(
      `directory ${quoted(directory)} holds modekeep's own records (below ${config.stateDir}): name another directory`,
    )
  }
  const { handle, stat } = openNodeDirectory(host, directory, 'directory')
  using _ = closing(host.inodes, handle)
  // A server's root does not tell.
  const volume = known !== undefined && isTextIdentity(known) ? known : volumeIdentity(host, handle, stat)
  if (known !== undefined && volume !== known) {
    throw new Refusal(`directory ${quoted(directory)} was exchanged while it was opened: call this again`)
  }
  return { directory, volume, tree: detachedMount(host, handle, flags) }
}

function detachedMount(host: Host, directory: Handle, flags: MountFlags): Handle {
  let tree: Handle
  try {
    tree = host.mounts.cloneTree(directory)
  } catch (error) {
    if (errorCode(error) !== 'EPERM') throw error
    throw new Refusal(
      'it looks at a volume through a mount of its own, which this root may not make: run it on the node',
    )
  }
  try {
    host.mounts.setFlags(tree, flags)
    return tree
  } catch (error) {
    host.inodes.close(tree)
    throw error
  }
}

/** The order as the walk of a mount takes it: no mount directory is left out when holders are looked for. */
export function orderFor({ directory, volume }: VolumeByHand, order: ByHandOrder): VolumeOrder {
  return { ...order, volume, source: directory, restoreOnUnmount: false }
}

/**
 * The walk that a mount does, without the mount: the same lock, records, journal and conflicts.
 * @returns what it did; undefined where the root has the group already
 * @throws {Refusal} when another group's mount holds the volume or a part of it
 */
export async function applyByHand(
  session: Session,
  opened: VolumeByHand,
  order: ByHandOrder,
): Promise<WalkReport | undefined> {
  const { lock, report } = await ownVolume(session, opened.tree, orderFor(opened, order))
  lock.release()
  return report
}
