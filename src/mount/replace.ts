import { closing, type Handle, type Host, isDirectory } from '../host/host.ts'
import { layersAtPath } from '../mount-table/layers.ts'
import type { MountPoint } from '../mount-table/mount-point.ts'
import type { MountRow } from '../mount-table/mountinfo.ts'
import { isSameLocation, locationOfRow, locationsFrom, type TreeLocation } from '../mount-table/tree-location.ts'
import { attachAt, detachAll } from './attach.ts'
import { setTarget } from './mount-target.ts'
import { SavedMount } from './saved-mount.ts'

/**
 * Puts a detached tree in the place of all that is mounted at the point. With MOVE_MOUNT_BENEATH there is no moment
 * without a mount; an older kernel has a short one.
 * @param source what the tree shows, as a path, where it has one
 */
export function replaceAt(host: Host, point: MountPoint, tree: Handle, source: string | undefined): void {
  const wanted = source === undefined ? undefined : locationsFrom(host.mounts.table())(source)
  let layers = layersAtPath(host, point.path)
  // Counted anew each time: where the source's mount is shared, one umount takes several.
  for (; mayShowBelow(layers, wanted); layers = layersAtPath(host, point.path))
    host.mounts.detach(point.parent, point.name)
  if (layers.length > 0 && attachBeneath(host, point, tree)) host.mounts.detach(point.parent, point.name)
  else replaceWithGap(host, point, tree)
}

function attachBeneath(host: Host, point: MountPoint, tree: Handle): boolean {
  const old = host.inodes.openEntry(point.parent, point.name)
  using _ = closing(host.inodes, old)
  return host.mounts.attachBeneath(tree, old)
}

/** The kernel says the same whether it has no MOVE_MOUNT_BENEATH or the two roots are not of one type. */
function replaceWithGap(host: Host, point: MountPoint, tree: Handle): void {
  // Not asked of a daemon that serves it: that may hang.
  const type = isDirectory(host.inodes.statMountPoint(tree)) ? 'directory' : 'file'
  const saved = SavedMount.of(host, point)
  try {
    detachAll(host, point)
    setTarget(host, point, type)
    attachAt(host, point, tree)
  } catch (error) {
    saved?.putBack()
    throw error
  } finally {
    saved?.close()
  }
}

/**
 * Whether users may see what lies under the topmost layer for a moment: the same directory, or the one that comes next.
 * Any other layer stays hidden until the unmount: nothing but the topmost can be taken away.
 */
function mayShowBelow(layers: readonly MountRow[], wanted: TreeLocation | undefined): boolean {
  const [below, top] = layers.slice(-2).map(locationOfRow)
  if (below === undefined || top === undefined) return false
  return isSameLocation(below, top) || (wanted !== undefined && isSameLocation(below, wanted))
}
