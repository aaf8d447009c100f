import type { Handle, Host } from '../host/host.ts'
import { findRowById, type MountRow } from './mountinfo.ts'

/** The type of the file system that a handle is on, as mountinfo names it; undefined where nothing tells. */
export function readFileSystemType({ inodes, mounts }: Host, handle: Handle): string | undefined {
  const known = inodes.typeOfMount(inodes.statMountPoint(handle).mountId)
  if (known !== undefined) return known
  return findMountRow(mounts, handle)?.fsType
}

/** The row of the mount table that a handle is on; undefined: the table does not have it, as that of a detached mount. */
export function findMountRow(mounts: Host['mounts'], handle: Handle): MountRow | undefined {
  return findRowById(mounts.table(), mounts.tableId(handle))
}

/** Interfaces to the kernel in the form of files: an owner there decides who may use it, and no data is kept. */
const KERNEL_INTERFACES = new Set(
  `autofs binder binfmt_misc bpf cgroup cgroup2 configfs debugfs devpts devtmpfs efivarfs functionfs fusectl mqueue nfsd
   nsfs proc pstore resctrl rpc_pipefs securityfs selinuxfs smackfs sysfs tracefs`.split(/\s+/),
)

export const isKernelInterface = (fsType: string | undefined): boolean =>
  fsType !== undefined && KERNEL_INTERFACES.has(fsType)
