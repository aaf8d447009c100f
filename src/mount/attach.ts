import { quoteValue, Refusal } from '../errors/refusal.ts'
import { deferHandleClose, getErrno, type Handle, type Host, isDirectory } from '../kernel/host.ts'
import {
  classifyMountPoint,
  isEmptyFile,
  isMounted,
  type MountPoint,
  openMountedRoot,
  statMountPointUnsynced,
} from '../kernel/mount-table/mount-point.ts'
import { type MountRow, readMountLayers } from '../kernel/mount-table/mountinfo.ts'
import {
  createLocationFinder,
  isSameLocation,
  resolveMountRowLocation,
  type TreeLocation,
} from '../kernel/mount-table/tree-location.ts'

// Kubelet's modes for volume directories (pkg/volume/flexvolume/util.go) and subPath files (pkg/volume/util/subpath).
export const MOUNT_POINT_DIRECTORY_MODE = 0o750
const MOUNT_POINT_FILE_MODE = 0o640

// open_tree(2) fails with ENOSPC at the limit fs.mount-max.
const EXHAUSTED_RESOURCE_CODES: ReadonlySet<string> = new Set(['EMFILE', 'ENFILE', 'ENOMEM', 'ENOSPC'])

export function attachTreeAtPoint({ inodes, mounts }: Host, { parent, name }: MountPoint, tree: Handle): void {
  const target = inodes.openEntry(parent, name)
  using _ = deferHandleClose(inodes, target)
  mounts.attach(tree, target)
}

/**
 * Removes every mount at the point. Processes that use a removed mount keep it.
 * @param findsUse tries a plain unmount first, which fails if the mount is in use
 * @returns whether a mount was in use; false without `findsUse`
 */
export function detachAllMounts(host: Host, point: MountPoint, findsUse = false): boolean {
  let isInUse = false
  for (let there = statMountPointUnsynced(host, point); isMounted(there); there = statMountPointUnsynced(host, point)) {
    try {
      if (findsUse && host.mounts.unmount(point.parent, point.name)) continue
      isInUse = findsUse
      host.mounts.detach(point.parent, point.name)
    } catch (error) {
      // A directory whose stat fails is not always a mount point.
      if (there === 'broken' && getErrno(error) === 'EINVAL') break
      throw error
    }
  }
  return isInUse
}

/**
 * Makes the point an empty directory or an empty file. Only an empty or a missing entry is replaced. A crash in between
 * leaves the point missing: kubelet takes it for unmounted and creates it again.
 * @throws {Refusal} if the entry is not a mount target, such as a file with content
 */
export function createEmptyMountPoint(host: Host, point: MountPoint, wanted: 'directory' | 'file'): void {
  const { inodes } = host
  const { parent, name, path } = point
  const stat = statMountPointUnsynced(host, point)
  const there = stat === 'broken' ? 'directory' : classifyMountPoint(point, stat)
  if (there === wanted) return
  if (wanted === 'directory') {
    if (there === 'file') inodes.removeFile(parent, name)
    inodes.createDirectory(parent, name, MOUNT_POINT_DIRECTORY_MODE)
    return
  }
  try {
    if (there === 'directory') inodes.removeDirectory(parent, name)
  } catch (error) {
    if (getErrno(error) !== 'ENOTEMPTY') throw error
    throw Refusal.of(
      'mount-directory',
      `mount directory ${quoteValue(path)} is not empty, so no file can take its place`,
      'empty it',
    )
  }
  try {
    inodes.createFile(parent, name, MOUNT_POINT_FILE_MODE)
  } catch (error) {
    inodes.createDirectory(parent, name, MOUNT_POINT_DIRECTORY_MODE)
    throw error
  }
}

/** A clone of the mount at a point, kept while the mount is removed before the next one is attached. */
export interface SavedMount extends Disposable {
  /** Attaches the clone again. Does nothing if the mount itself is still there. */
  restore(): void
}

/**
 * Clones the mount at the point.
 * @returns undefined if nothing is mounted, or the mount does not respond or cannot be cloned
 * @throws {SystemError} if a resource of the node is exhausted: then the mount must not be removed
 */
export function cloneMountForRestore(host: Host, point: MountPoint): SavedMount | undefined {
  const { inodes, mounts } = host
  try {
    const root = inodes.openEntry(point.parent, point.name)
    using _ = deferHandleClose(inodes, root)
    const saved = inodes.statMountPoint(root)
    if (!saved.mountRoot) return undefined
    // The clone includes the mounts inside of the source that the mount shows.
    const clone = mounts.cloneTree(root, true)
    return {
      restore() {
        const there = statMountPointUnsynced(host, point)
        if (there !== 'broken' && there?.mountRoot && there.mountId === saved.mountId) return
        // A layer that was covered is mounted on without a change of its type.
        if (!isMounted(there)) createEmptyMountPoint(host, point, isDirectory(saved) ? 'directory' : 'file')
        attachTreeAtPoint(host, point, clone)
      },
      ...deferHandleClose(inodes, clone),
    }
  } catch (error) {
    const code = getErrno(error)
    if (code === undefined || EXHAUSTED_RESOURCE_CODES.has(code)) throw error
    // The mount does not respond, or cannot be cloned.
    return undefined
  }
}

/**
 * Replaces all mounts at the point by a detached tree. With MOVE_MOUNT_BENEATH the point is never without a mount; an
 * older kernel leaves it without one for a moment.
 * @param source the path of the tree's root, if it has one
 */
export function replaceMounts(host: Host, point: MountPoint, tree: Handle, source: string | undefined): void {
  const { parent, name, path } = point
  const wanted = source === undefined ? undefined : createLocationFinder(host.mounts.table())(source)
  let layers = readMountLayers(host, path)
  while (mayShowLayerBelow(layers, wanted)) {
    host.mounts.detach(parent, name)
    layers = readRemainingMountLayers(host, point, layers)
  }
  if (layers.length > 0 && attachBeneathTopMount(host, point, tree)) host.mounts.detach(parent, name)
  else replaceMountWithGap(host, point, tree)
}

/**
 * Returns the layers that remain after one umount, which removes several if the source's mount is shared. Reads the mount
 * table again only if the topmost mount is none of the earlier layers.
 * @param layers is modified
 */
function readRemainingMountLayers(host: Host, point: MountPoint, layers: MountRow[]): MountRow[] {
  const { inodes, mounts } = host
  const top = openMountedRoot(host, point)
  using _ = deferHandleClose(inodes, top)
  if (top === undefined) return readMountLayers(host, point.path)
  const topId = mounts.tableId(top)
  for (layers.pop(); layers.length > 0; layers.pop()) if (layers.at(-1)?.id === topId) return layers
  return inodes.statMountPoint(top).mountRoot ? readMountLayers(host, point.path) : []
}

/** @returns false if the kernel cannot, or the old mount's handle is stale: NFS 3 refuses to open its root */
function attachBeneathTopMount(host: Host, point: MountPoint, tree: Handle): boolean {
  const old = openMountedRoot(host, point)
  using _ = deferHandleClose(host.inodes, old)
  return old !== undefined && host.mounts.attachBeneath(tree, old)
}

/** The kernel returns the same error if it lacks MOVE_MOUNT_BENEATH and if the two roots differ in type. */
function replaceMountWithGap(host: Host, point: MountPoint, tree: Handle): void {
  // statMountPoint makes no request to the tree's daemon, which may hang.
  const type = isDirectory(host.inodes.statMountPoint(tree)) ? 'directory' : 'file'
  using saved = cloneMountForRestore(host, point)
  try {
    detachAllMounts(host, point)
    createEmptyMountPoint(host, point, type)
    attachTreeAtPoint(host, point, tree)
  } catch (error) {
    saved?.restore()
    throw error
  }
}

/**
 * Whether users may see the layer under the topmost one for a moment: it shows the same directory, or the next one.
 * Any other layer stays hidden until the unmount, because only the topmost layer can be removed.
 */
function mayShowLayerBelow(layers: readonly MountRow[], wanted: TreeLocation | undefined): boolean {
  const [below, top] = layers.slice(-2).map(resolveMountRowLocation)
  if (below === undefined || top === undefined) return false
  return isSameLocation(below, top) || (wanted !== undefined && isSameLocation(below, wanted))
}

/** Replaces an empty file, on which a volume was mounted, by a directory. Any other entry is not modekeep's and stays. */
export function replaceMountFileByDirectory(host: Host, point: MountPoint): void {
  const stat = statMountPointUnsynced(host, point)
  if (stat !== undefined && stat !== 'broken' && isEmptyFile(stat)) createEmptyMountPoint(host, point, 'directory')
}
