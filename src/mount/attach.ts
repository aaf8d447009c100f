import { closing, errorCode, type Handle, type Host } from '../host/host.ts'
import { type MountPoint, statPoint } from '../mount-table/mount-point.ts'

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

export function attachAt(host: Host, point: MountPoint, tree: Handle): void {
  const target = host.inodes.openEntry(point.parent, point.name)
  using _ = closing(host.inodes, target)
  host.mounts.attach(tree, target)
}
