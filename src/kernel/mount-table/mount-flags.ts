import type { Handle, Host, MountFlags } from '../host.ts'
import { snapshotMountTable } from './mountinfo.ts'

/** The MOUNT_ATTR_ bits of mount_setattr(2) are defined in include/uapi/linux/mount.h. */
export const MOUNT_ATTR_RDONLY = 0x1
const MOUNT_ATTR_ATIME_MASK = 0x70
export const MOUNT_ATTR_NOSYMFOLLOW = 0x200000

interface MountOption extends MountFlags {
  /** Options of one family contradict each other. */
  family: string
}

/**
 * The options that every kind of mount accepts. rw, suid, dev and exec only mean "do not restrict": they never clear a flag
 * of the source's own mount, so a pod cannot undo the administrator's noexec.
 */
export const MOUNT_OPTIONS_BY_NAME: ReadonlyMap<string, MountOption> = new Map([
  ['ro', { family: 'write', set: MOUNT_ATTR_RDONLY, clear: 0 }],
  ['rw', { family: 'write', set: 0, clear: 0 }],
  ['nosuid', { family: 'suid', set: 0x2, clear: 0 }],
  ['suid', { family: 'suid', set: 0, clear: 0 }],
  ['nodev', { family: 'dev', set: 0x4, clear: 0 }],
  ['dev', { family: 'dev', set: 0, clear: 0 }],
  ['noexec', { family: 'exec', set: 0x8, clear: 0 }],
  ['exec', { family: 'exec', set: 0, clear: 0 }],
  ['relatime', { family: 'atime', set: 0, clear: MOUNT_ATTR_ATIME_MASK }],
  ['noatime', { family: 'atime', set: 0x10, clear: MOUNT_ATTR_ATIME_MASK }],
  ['strictatime', { family: 'atime', set: 0x20, clear: MOUNT_ATTR_ATIME_MASK }],
  ['nodiratime', { family: 'diratime', set: 0x80, clear: 0 }],
  ['nosymfollow', { family: 'symfollow', set: MOUNT_ATTR_NOSYMFOLLOW, clear: 0 }],
])

/** The options that a pod may use by default. Only the node's configuration permits suid and dev. */
export const ORDINARY_MOUNT_OPTIONS: readonly string[] = [...MOUNT_OPTIONS_BY_NAME.keys()].filter(
  (name) => name !== 'suid' && name !== 'dev',
)

function combineMountFlags(flags: readonly MountOption[]): MountFlags {
  const none: MountFlags = { set: 0, clear: 0 }
  return flags.reduce(({ set, clear }, flag) => ({ set: set | flag.set, clear: clear | flag.clear }), none)
}

function selectMountOptions(options: readonly string[]): MountOption[] {
  return options.flatMap((option) => MOUNT_OPTIONS_BY_NAME.get(option) ?? [])
}

/** Converts mount options to the attributes of a mount. Options that are not flags belong to the file system and are skipped. */
export function parseMountFlags(options: readonly string[], readOnly: boolean): MountFlags {
  const requested = selectMountOptions(options)
  const families = new Set(requested.map((flag) => flag.family))
  const defaults = selectMountOptions(['nosuid', 'nodev']).filter((flag) => !families.has(flag.family))
  return combineMountFlags([...defaults, ...requested, ...(readOnly ? selectMountOptions(['ro']) : [])])
}

/** Finds pairs of options that contradict each other, in the order of the options. */
export function findContradictingMountOptions(options: readonly string[]): [string, string][] {
  const firsts = new Map<string, string>()
  return options.flatMap((option): [string, string][] => {
    const family = MOUNT_OPTIONS_BY_NAME.get(option)?.family
    if (family === undefined) return []
    const first = firsts.getOrInsert(family, option)
    return first === option ? [] : [[first, option]]
  })
}

/** Converts the options in a mountinfo row to attributes, for the mount that replaces this one. */
export function parseMountRowFlags(options: readonly string[]): MountFlags {
  const hasAtime = options.some((option) => MOUNT_OPTIONS_BY_NAME.get(option)?.family === 'atime')
  // The kernel lists relatime and noatime in mountinfo. A mount with neither has strictatime.
  return combineMountFlags(selectMountOptions(hasAtime ? options : [...options, 'strictatime']))
}

/**
 * Options of a mount that runc 1.2 and newer clears in the container unless the container's mount names them
 * (libcontainer/rootfs_linux.go: the bind is mounted once more with the requested flags alone).
 */
const MOUNT_RESTRICTIONS = ['ro', 'nosuid', 'nodev', 'noexec', 'nosymfollow', 'noatime', 'nodiratime']

/** Returns the restrictions among MOUNT_ATTR_ bits, as mount options. */
export function formatMountRestrictions(attributes: number): string[] {
  return MOUNT_RESTRICTIONS.filter((name) => (attributes & (MOUNT_OPTIONS_BY_NAME.get(name)?.set ?? 0)) !== 0)
}

/**
 * Reads the restrictions of attached mounts by their handles: by the mount's id or, before Linux 6.8, by its row in the
 * mount table, which is read once.
 * @returns for the handle of an inode: the restrictions of its mount; undefined where the mount is not attached any more
 */
export function createMountRestrictionsReader({ inodes, mounts }: Host): (handle: Handle) => string[] | undefined {
  const table = snapshotMountTable({ mounts })
  return (handle) => {
    const attributes = mounts.attributesOf(inodes.statMountPoint(handle).mountId)
    if (attributes !== undefined) return formatMountRestrictions(attributes)
    const options = table.findRow(mounts.tableId(handle))?.options
    return options && MOUNT_RESTRICTIONS.filter((name) => options.includes(name))
  }
}

/** Adds restrictions to a container's mount options, in place of the options that contradict them. */
export function restrictMountOptions(options: readonly string[], restrictions: readonly string[]): string[] {
  const families = new Set(restrictions.map((name) => MOUNT_OPTIONS_BY_NAME.get(name)?.family))
  const kept = options.filter((option) => {
    const family = MOUNT_OPTIONS_BY_NAME.get(option)?.family
    return restrictions.includes(option) || family === undefined || !families.has(family)
  })
  return [...kept, ...restrictions.filter((name) => !kept.includes(name))]
}
