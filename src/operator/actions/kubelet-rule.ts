import { DIRECTORY, FILE_TYPE, type Stat, SYMLINK } from '../../host/host.ts'
import { type Ownership, ownershipOf } from '../../ownership/inode/policy.ts'

const FILE_MASK = 0o660
const DIRECTORY_MASK = 0o2770
const ROOT_BITS = 0o2770

/** What kubelet's own walk makes of an inode: chown, and chmod with more bits unless it is a link (volume_linux.go). */
export function kubeletsResult(stat: Stat, group: number): Ownership {
  const { mode } = ownershipOf(stat)
  switch (stat.mode & FILE_TYPE) {
    case SYMLINK:
      return { gid: group, mode }
    case DIRECTORY:
      return { gid: group, mode: mode | DIRECTORY_MASK }
    default:
      return { gid: group, mode: mode | FILE_MASK }
  }
}

/** Whether kubelet spares the walk with OnRootMismatch: it wants the permission bits on the root too. */
export function kubeletSkips(root: Stat, group: number): boolean {
  return root.gid === group && (root.mode & ROOT_BITS) === ROOT_BITS
}
