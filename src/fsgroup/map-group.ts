import { createFault } from '../errors/fault.ts'
import { Refusal } from '../errors/refusal.ts'
import { getErrno, type Handle, type Host, SystemError } from '../kernel/host.ts'
import { describeIdMapFault, type IdMap, type IdRange, mapToShownId } from '../kernel/id-map.ts'
import { findMountRow } from '../kernel/mount-table/mountinfo.ts'
import type { Session } from '../state/session.ts'

/** No mount of the volume can have an id map on this node, with any option. A walk can still apply the group. */
export class UnmappableVolume extends Refusal {
  readonly why: string

  constructor(why: string, options?: ErrorOptions) {
    super(
      createFault(
        'idmap-impossible',
        `ownership "idmap" is not possible for this volume`,
        'write ownership "auto", which takes what is possible',
        why,
      ),
      options,
    )
    this.name = 'UnmappableVolume'
    this.why = why
  }
}

export const SEVERAL_GROUPS_REASON = 'a walk or a restore of it was not finished, so its files have several groups'

/** First Linux version that can mount each file system idmapped: mount_setattr(2). Types without one are missing. */
const FIRST_IDMAP_LINUX_VERSION: Readonly<Record<string, string>> = {
  vfat: '5.12',
  ext4: '5.12',
  xfs: '5.12',
  btrfs: '5.15',
  ntfs3: '5.15',
  f2fs: '5.18',
  erofs: '5.19',
  squashfs: '6.2',
  tmpfs: '6.3',
  ceph: '6.7',
  hugetlbfs: '6.9',
}

/**
 * Applies an id map to a detached tree.
 * @param source directory that the tree is a clone of, for messages; undefined: a new file system, of type `fsType`
 * @throws {UnmappableVolume} if this volume, kernel or process cannot do it; the tree must not be attached then
 */
export function applyIdMap(
  { host }: Session,
  tree: Handle,
  source: Handle | undefined,
  map: IdMap,
  fsType?: string,
): void {
  const fault = describeIdMapFault(map)
  if (fault !== undefined) throw new UnmappableVolume(fault)
  const before = host.inodes.stat(tree)
  try {
    host.mounts.mapIds(tree, map)
  } catch (error) {
    const why = error instanceof SystemError ? explainIdMapError(host, error, source, fsType) : undefined
    throw why === undefined ? error : new UnmappableVolume(why, { cause: error })
  }
  // On a file system of another user namespace, the kernel applies the map to the ids on disk, not to the visible ones.
  // Files of a container's root would appear as files of the node's root.
  const after = host.inodes.stat(tree)
  const isAs = (ranges: readonly IdRange[], was: number, is: number) =>
    [undefined, is].includes(mapToShownId(ranges, was))
  if (isAs(map.uids, before.uid, after.uid) && isAs(map.gids, before.gid, after.gid)) return
  throw new UnmappableVolume(
    'its file system belongs to another user namespace, so its owners on disk are not those seen',
  )
}

const OWN_USER_NAMESPACE_REASON = 'modekeep itself runs in a user namespace on this node'

/** Returns undefined if the error does not show a reason. */
function explainIdMapError(
  host: Host,
  error: SystemError,
  source: Handle | undefined,
  fsType?: string,
): string | undefined {
  const code = getErrno(error)
  if (error.syscall === 'mount_setattr') {
    if (code === 'ENOSYS') return "this node's kernel has no idmapped mounts, Linux 5.12 and newer have"
    const row = source === undefined ? undefined : findMountRow(host.mounts, source)
    if (code === 'EPERM')
      return row?.options.includes('idmapped') ? 'its source is an idmapped mount already' : OWN_USER_NAMESPACE_REASON
    return code === 'EINVAL' ? explainUnmappableFileSystem(row?.fsType ?? fsType) : undefined
  }
  switch (code) {
    case 'ENOSPC':
    case 'EUSERS':
      return `this node allows no further user namespaces, which it needs for a moment (${error.message})`
    case 'EINVAL':
    case 'ENOSYS':
      // EINVAL of a write to uid_map or gid_map concerns the ranges: the namespace exists by then.
      if (code === 'EINVAL' && error.syscall !== 'clone')
        return `this node's kernel rejects these ranges of ids (${error.message})`
      return `this node's kernel has no user namespaces (${error.message})`
    case 'EPERM':
    case 'EACCES':
      // A policy, such as SELinux's, denies with EACCES.
      return code === 'EACCES' || error.syscall === 'clone'
        ? `modekeep may make no user namespace on this node (${error.message})`
        : OWN_USER_NAMESPACE_REASON
    default:
      return undefined
  }
}

function explainUnmappableFileSystem(fsType = 'its file system'): string {
  const cannot = `this node's kernel cannot mount ${fsType} idmapped`
  if (FIRST_IDMAP_LINUX_VERSION[fsType] !== undefined)
    return `${cannot}, Linux ${FIRST_IDMAP_LINUX_VERSION[fsType]} and newer can`
  if (!/^(fuse|virtiofs)/.test(fsType)) return cannot
  return `${cannot}: its daemon must ask for it, on Linux 6.12 or newer`
}
