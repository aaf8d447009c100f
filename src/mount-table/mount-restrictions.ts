import type { Handle, Host } from '../host/host.ts'
import { FLAGS } from './mount-flags.ts'
import { createRowFinder } from './mountinfo.ts'

/**
 * Options of a mount that runc 1.2 and newer clears in the container unless the container's mount names them
 * (libcontainer/rootfs_linux.go: the bind is mounted once more with the requested flags alone).
 */
const RESTRICTIONS = ['ro', 'nosuid', 'nodev', 'noexec', 'nosymfollow', 'noatime', 'nodiratime']

/** Returns the restrictions among MOUNT_ATTR_ bits, as mount options. */
export function formatRestrictions(attributes: number): string[] {
  return RESTRICTIONS.filter((name) => (attributes & (FLAGS.get(name)?.set ?? 0)) !== 0)
}

/**
 * Reads the restrictions of attached mounts by their handles: by the mount's id or, before Linux 6.8, by its row in the
 * mount table, which is read once.
 * @returns for the handle of an inode: the restrictions of its mount; undefined where the mount is not attached any more
 */
export function createMountRestrictionsReader({ inodes, mounts }: Host): (handle: Handle) => string[] | undefined {
  let findRow: ReturnType<typeof createRowFinder> | undefined
  return (handle) => {
    const attributes = mounts.attributesOf(inodes.statMountPoint(handle).mountId)
    if (attributes !== undefined) return formatRestrictions(attributes)
    findRow ??= createRowFinder(mounts.table())
    const options = findRow(mounts.tableId(handle))?.options
    return options && RESTRICTIONS.filter((name) => options.includes(name))
  }
}

/** Adds restrictions to a container's mount options, in place of the options that contradict them. */
export function restrictOptions(options: readonly string[], restrictions: readonly string[]): string[] {
  const families = new Set(restrictions.map((name) => FLAGS.get(name)?.family))
  const kept = options.filter((option) => {
    const family = FLAGS.get(option)?.family
    return restrictions.includes(option) || family === undefined || !families.has(family)
  })
  return [...kept, ...restrictions.filter((name) => !kept.includes(name))]
}
