import { Refusal } from '../errors/refusal.ts'
import { isRootWithoutSetGid, restoreRootSetGid, setDirectorySetGid, setRootSetGid } from '../fsgroup/root-bit.ts'
import { refuseSystemGroup } from '../fsgroup/system-group.ts'
import { isDirectory } from '../kernel/host.ts'
import { type MountTableSnapshot, readFileSystemType } from '../kernel/mount-table/mountinfo.ts'
import { computeGroupBits, formatOwnership, readAcl } from '../ownership/inode/attributes.ts'
import { acquireRecordLock } from '../state/locks.ts'
import { locateVolumeRecords } from '../state/record-directories.ts'
import type { Session } from '../state/session.ts'
import { resolveVolumeIdentity } from '../state/volume-identity.ts'
import { type CloneRequest, type ContainerCloneRequest, LEAVE_VOLUME_OUT_REMEDY } from './clone-request.ts'
import type { CloneSource } from './clone-source.ts'

/** Returns whether a container can create files through a clone that maps the group on disk. */
const canContainerWriteMapped = ({ options }: CloneRequest, { from, to }: CloneSource): boolean =>
  to !== undefined && to !== from && !options.includes('ro')

/** @throws {Refusal} if no rule permits the group on disk, or the requested set-gid bit */
export function checkMapRules(
  session: Session,
  request: CloneRequest,
  source: CloneSource,
  table: MountTableSnapshot,
): void {
  if (!canContainerWriteMapped(request, source)) return
  const { tree, clonedFrom, from } = source
  const type = clonedFrom && readFileSystemType(session.host, clonedFrom)
  const rules = request.grants?.filter(({ fsTypes }) => type !== undefined && fsTypes.includes(type))
  refuseSystemGroup(session, { tree, clonedFrom }, from, rules ?? [{}], table)
  if (request.setGid !== 'requested' || rules?.some(({ setGid }) => setGid === 'root')) return
  throw Refusal.of(
    'set-gid',
    'may not have the set-gid bit on its root (annotation modekeep/set-gid)',
    'leave the annotation out, or have "setGid": "root" written in the rule of "map" for it',
  )
}

/** Fields of a container's record about a volume's root. */
export interface VolumeRootFacts {
  /** Identity of the whole volume, which is the key of its set-gid record. */
  rootVolume?: string
  hasPlainRoot?: true
  /** Owner, group and mode of the mounted directory, if the group cannot create files in it. */
  closedRoot?: string
}

/**
 * Finds a directory in which the group cannot create files. The pod may not need that: its process may own the directory.
 * @returns owner, group and mode of the directory
 * @throws {Refusal} if the pod's process certainly cannot either, and its group is not optional
 */
export function findClosedRoot(
  { host: { inodes } }: Session,
  {
    isOptional,
    processUid,
    processGids = [],
  }: Pick<ContainerCloneRequest, 'isOptional' | 'processUid' | 'processGids'>,
  { options, group, isOwn }: CloneRequest,
  { clonedFrom, tree, from }: CloneSource,
): string | undefined {
  if (isOwn || group === undefined || clonedFrom === undefined) return undefined
  if (options.includes('ro') || inodes.isReadOnly(tree)) return undefined
  const stat = inodes.stat(clonedFrom)
  const acl = readAcl(inodes, clonedFrom)
  const isOpenTo = (gid: number) => (computeGroupBits(stat, acl, gid) & WRITE_SEARCH_MODE) === WRITE_SEARCH_MODE
  if (!isDirectory(stat) || isOpenTo(from)) return undefined
  const root = formatOwnership(stat)
  if (isOptional || processUid === undefined || processUid === 0 || processUid === stat.uid) return root
  // An access control list may name the user, and a directory below the root may belong to another group of the process.
  if (acl !== undefined || processGids.some((gid) => gid !== group && isOpenTo(gid))) return root
  throw Refusal.of(
    'map-closed-root',
    `is ${root} on disk, so group ${group} cannot create files in it`,
    `write annotation modekeep/group-access "grant", which has the volume walked ("modekeep plan DIR --fsgroup ${group}" on the node lists what it or kubelet's walk would change), run "chmod g+rwxs" for the directory there, mount the volume readOnly, or ${LEAVE_VOLUME_OUT_REMEDY}`,
  )
}

const WRITE_SEARCH_MODE = 0o3

export function findRootFacts(session: Session, request: CloneRequest, source: CloneSource): VolumeRootFacts {
  const { root } = source
  if (root === undefined || !canContainerWriteMapped(request, source)) return {}
  const rootVolume = resolveVolumeIdentity(session, root.handle, session.host.inodes.stat(root.handle))
  const isPlain = request.setGid === undefined && isRootWithoutSetGid(session, root.handle)
  return { ...(rootVolume !== undefined && { rootVolume }), ...(isPlain && { hasPlainRoot: true }) }
}

/**
 * Sets the set-gid bit on the volume's root if the request has it. For an emptyDir also on a subPath's directory, which
 * kubelet created before the bit was set.
 * @param rootVolume result of `findRootFacts`
 * @param pod namespace and name
 */
export async function setCloneSetGid(
  session: Session,
  request: CloneRequest,
  source: CloneSource,
  rootVolume: string | undefined,
  pod: string,
): Promise<void> {
  const { root, clonedFrom } = source
  if (root === undefined || request.setGid === undefined || !canContainerWriteMapped(request, source)) return
  if (request.setGid === 'emptyDir') {
    setDirectorySetGid(session, root.handle)
    const { inodes } = session.host
    if (clonedFrom !== undefined && isDirectory(inodes.stat(clonedFrom))) setDirectorySetGid(session, clonedFrom)
    return
  }
  if (rootVolume === undefined) return
  using _ = await acquireRecordLock(session, locateVolumeRecords(session, rootVolume))
  await setRootSetGid(session, { volume: rootVolume, source: root.path, pod }, root.handle)
}

/**
 * Is called after a container's record is removed.
 * @param options isSweep: skips volumes that another call has locked, because the runtime waits
 */
export async function restoreVolumeSetGid(
  session: Session,
  volumes: readonly { rootVolume?: string | undefined }[],
  options: { isSweep?: boolean } = {},
): Promise<void> {
  for (const { rootVolume } of volumes)
    if (rootVolume !== undefined) await restoreRootSetGid(session, rootVolume, options)
}
