import type { Handle, Host } from '../host/host.ts'
import { findRowById, type MountRow } from './mountinfo.ts'

/** Reads the type of the file system that a handle is on, as in mountinfo. Returns undefined if the mount table has no row of it. */
export function readFileSystemType({ inodes, mounts }: Host, handle: Handle): string | undefined {
  const known = inodes.typeOfMount(inodes.statMountPoint(handle).mountId)
  if (known !== undefined) return known
  return findMountRow(mounts, handle)?.fsType
}

/** Finds the row of the mount that a handle is on. Returns undefined if the table has no such row: a detached mount has none. */
export function findMountRow(mounts: Host['mounts'], handle: Handle): MountRow | undefined {
  return findRowById(mounts.table(), mounts.tableId(handle))
}

/** File systems that are interfaces to the kernel: an owner there decides who may use the interface, and no data is stored. */
const KERNEL_INTERFACES = new Set(
  `autofs binder binfmt_misc bpf cgroup cgroup2 configfs debugfs devpts devtmpfs efivarfs functionfs fusectl mqueue nfsd
   nsfs proc pstore resctrl rpc_pipefs securityfs selinuxfs smackfs sysfs tracefs`.split(/\s+/),
)

export const isKernelInterface = (fsType: string | undefined): boolean =>
  fsType !== undefined && KERNEL_INTERFACES.has(fsType)
