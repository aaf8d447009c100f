import type { Handle, Host } from '../host/host.ts'
import { type MountRow, rowWithId } from './mountinfo.ts'

/** The type of the file system that a handle is on, as mountinfo names it; undefined where nothing tells. */
export function fileSystemType({ inodes, mounts }: Host, handle: Handle): string | undefined {
  const known = inodes.typeOfMount(inodes.statMountPoint(handle).mountId)
  if (known !== undefined) return known
  return rowOf(mounts, handle)?.fsType
}

/** The row of the mount table that a handle is on; undefined: the table does not have it, as that of a detached mount. */
export function rowOf(mounts: Host['mounts'], handle: Handle): MountRow | undefined {
  return rowWithId(mounts.table(), mounts.tableId(handle))
}

/** Interfaces to the kernel in the form of files: an owner there decides who may use it, and no data is kept. */
const OF_KERNEL = new Set(
  `autofs binder binfmt_misc bpf cgroup cgroup2 configfs debugfs devpts devtmpfs efivarfs functionfs fusectl mqueue nfsd
   nsfs proc pstore resctrl rpc_pipefs securityfs selinuxfs smackfs sysfs tracefs`.split(/\s+/),
)

export const isOfKernel = (fsType: string | undefined): boolean => fsType !== undefined && OF_KERNEL.has(fsType)
