import type { Host } from '../host/host.ts'
import { RDONLY } from '../mount-table/flags.ts'
import { GUARD_OPTIONS, hasGuard } from '../mount-table/layers.ts'
import { type MountPoint, statPoint } from '../mount-table/mount-point.ts'

/**
 * Lays an empty read-only file system in memory beneath what a daemon serves. When the daemon's mount goes, by whatever
 * hand, a pod that is started on the directory cannot write to the node's disk: modes do not stop root, this does.
 */
export function putGuard(host: Host, point: MountPoint): void {
  const stat = statPoint(host, point)
  const hasMount = stat === 'broken' || stat?.mountRoot === true
  if (hasMount && hasGuard(host, point.path)) return
  const guard = host.mounts.createTree('tmpfs', GUARD_OPTIONS)
  const there = host.inodes.openEntry(point.parent, point.name)
  try {
    host.mounts.setFlags(guard, { set: RDONLY, clear: 0 })
    // A kernel that cannot put it beneath a mount that is there leaves that mount without.
    if (hasMount) host.mounts.attachBeneath(guard, there)
    else host.mounts.attach(guard, there)
  } finally {
    host.inodes.close(there)
    host.inodes.close(guard)
  }
}
