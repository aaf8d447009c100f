import { hasPlainRoot, restoreRootBit, setBit, setRootBit } from '../fs-group/root-bit.ts'
import { refuseSystemGroup } from '../fs-group/system-group.ts'
import { isDirectory } from '../host/host.ts'
import { fileSystemType } from '../mount-table/file-system.ts'
import type { TableSnapshot } from '../mount-table/table-snapshot.ts'
import { Refusal } from '../refusal/refusal.ts'
import { holdPlace } from '../store/leftovers.ts'
import { volumePlace } from '../store/places.ts'
import type { Session } from '../store/session.ts'
import { volumeIdentity } from '../store/volume-identity.ts'
import type { Clonable } from './clonable.ts'
import type { CloneRequest } from './order.ts'

/** Whether a container can create files through a clone that shows the group on disk as another. */
const writesMapped = ({ options }: CloneRequest, { from, to }: Clonable): boolean =>
  to !== undefined && to !== from && !options.includes('ro')

/** @throws {Refusal} where no rule permits the group on disk, or the set-gid bit that is requested */
export function checkRules(session: Session, order: CloneRequest, source: Clonable, table: TableSnapshot): void {
  if (!writesMapped(order, source)) return
  const { tree, clonedFrom, from } = source
  const type = clonedFrom && fileSystemType(session.host, clonedFrom)
  const rules = order.grants?.filter(({ fsTypes }) => type !== undefined && fsTypes.includes(type))
  refuseSystemGroup(session, { tree, clonedFrom }, from, rules ?? [{}], table)
  if (order.setGid !== 'requested' || rules?.some(({ setGid }) => setGid === 'root')) return
  throw new Refusal(
    'may not have the set-gid bit on its root (annotation modekeep/set-gid): leave the annotation out, or have "setGid": "root" written in the rule of "map" for it',
  )
}

/** What a container's record says of the volume's root. */
export interface RootFacts {
  /** The identity of the whole volume, by which its set-gid bit is recorded. */
  rootVolume?: string
  hasPlainRoot?: true
}

export function findRootFacts(session: Session, order: CloneRequest, source: Clonable): RootFacts {
  const { root } = source
  if (root === undefined || !writesMapped(order, source)) return {}
  const rootVolume = volumeIdentity(session, root.handle, session.host.inodes.stat(root.handle))
  const isPlain = order.setGid === undefined && hasPlainRoot(session, root.handle)
  return { ...(rootVolume !== undefined && { rootVolume }), ...(isPlain && { hasPlainRoot: true }) }
}

/**
 * Sets the set-gid bit where the order has it. kubelet makes a subPath's directory before, without the bit.
 * @param rootVolume as `findRootFacts` found it
 */
export async function setRootBits(
  session: Session,
  order: CloneRequest,
  source: Clonable,
  rootVolume: string | undefined,
): Promise<void> {
  const { root, clonedFrom } = source
  if (root === undefined || order.setGid === undefined || !writesMapped(order, source)) return
  if (order.setGid === 'emptyDir') {
    setBit(session, root.handle)
    const { inodes } = session.host
    if (clonedFrom !== undefined && isDirectory(inodes.stat(clonedFrom))) setBit(session, clonedFrom)
    return
  }
  if (rootVolume === undefined) return
  using _ = await holdPlace(session, volumePlace(session, rootVolume))
  await setRootBit(session, rootVolume, root.path, root.handle)
}

/**
 * Called once a container's record is removed.
 * @param how isSweep: the runtime waits, so a volume that another call has is skipped
 */
export async function restoreRootBitsOf(
  session: Session,
  volumes: readonly { rootVolume?: string | undefined }[],
  how: { isSweep?: boolean } = {},
): Promise<void> {
  for (const { rootVolume } of volumes) if (rootVolume !== undefined) await restoreRootBit(session, rootVolume, how)
}
