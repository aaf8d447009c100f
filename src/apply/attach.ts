import { errorCode, type Handle, type Host } from '../host/host.ts'
import { layersAt, type MountRow, parseMountinfo } from '../mount-table/mountinfo.ts'
import { type Place, placesFrom } from '../mount-table/place.ts'
import { type MountPoint, statPoint } from './mount-point.ts'

/** Removes every mount at the point. What still uses one keeps its view of it. */
export function detachAll(host: Host, point: MountPoint): void {
  for (let there = statPoint(host, point); there === 'broken' || there?.mountRoot; there = statPoint(host, point)) {
    try {
      host.mounts.detach(point.parent, point.name)
    } catch (error) {
      // A directory that cannot be looked at is not always a mount.
      if (there === 'broken' && errorCode(error) === 'EINVAL') return
      throw error
    }
  }
}

/**
 * Puts a detached tree in the place of all that is mounted at the point. With MOVE_MOUNT_BENEATH there is no moment
 * without a mount; an older kernel has a short one.
 * @param source what the tree shows, as a path; '' where it has none
 */
export function replaceAt(host: Host, point: MountPoint, tree: Handle, source: string): void {
  const wanted = source === '' ? undefined : placesFrom(host.mounts.table())(source)
  let layers = layersOf(host, point)
  // Counted anew each time: where the source's mount is shared, one umount takes several.
  for (; mayShowBelow(layers, wanted); layers = layersOf(host, point)) host.mounts.detach(point.parent, point.name)
  const old = host.inodes.openEntry(point.parent, point.name)
  try {
    if (layers.length > 0 && host.mounts.attachBeneath(tree, old)) host.mounts.detach(point.parent, point.name)
    else {
      detachAll(host, point)
      attachAt(host, point, tree)
    }
  } finally {
    host.inodes.close(old)
  }
}

function layersOf(host: Host, point: MountPoint): MountRow[] {
  return layersAt(parseMountinfo(host.mounts.table()), point.path)
}

/**
 * Whether users may see what lies under the topmost layer for a moment: the same directory, or the one that comes next.
 * Any other layer stays hidden until the unmount: nothing but the topmost can be taken away.
 */
function mayShowBelow(layers: readonly MountRow[], wanted: Place | undefined): boolean {
  const [below, top] = layers.slice(-2).map(placeOfRow)
  if (below === undefined || top === undefined) return false
  return isSame(below, top) || (wanted !== undefined && isSame(below, wanted))
}

const placeOfRow = ({ device, root }: MountRow): Place => ({ device, path: root === '/' ? '' : root })
const isSame = (one: Place, other: Place) => one.device === other.device && one.path === other.path

export function attachAt(host: Host, point: MountPoint, tree: Handle): void {
  const target = host.inodes.openEntry(point.parent, point.name)
  try {
    host.mounts.attach(tree, target)
  } finally {
    host.inodes.close(target)
  }
}
