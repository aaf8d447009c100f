import { isGroupInRanges, type SystemGroupRule } from '../config/rule.ts'
import { deferHandleClose, formatDeviceId, getErrno, type Handle, type Host, isDiskDevice } from '../kernel/host.ts'
import {
  isKernelInterfaceFsType,
  type MountRow,
  type MountTableSnapshot,
  parseMountinfo,
  snapshotMountTable,
} from '../kernel/mount-table/mountinfo.ts'
import { isRemoteFsType } from '../kernel/mount-table/responsiveness.ts'
import {
  areLocationsNested,
  createHandleLocationFinder,
  createMountFinder,
  resolveMountRowLocation,
  resolveRelativePath,
  toPathPrefix,
} from '../kernel/mount-table/tree-location.ts'
import { readAcl } from '../ownership/inode/attributes.ts'
import type { Session } from '../state/session.ts'
import { UnmappableVolume } from './map-group.ts'

/** Debian and the LSB give lower ids to groups of the system (login.defs, GID_MIN). */
const FIRST_USER_GROUP_ID = 1000

/** Returns whether a rule forbids that a pod is shown a group on disk as its own. */
function isGroupProtected(group: number, { systemGroups, protectedGroups = [] }: SystemGroupRule): boolean {
  return !systemGroups && (group < FIRST_USER_GROUP_ID || isGroupInRanges(protectedGroups, group))
}

/**
 * Refuses to map a group of the system in a volume that users of the node reach. A pod that sees the group as its own
 * can create an executable with set-gid. On the node, the executable runs with the group on disk for every user. An
 * fsGroup grants less, because the group on disk is the same as in the pod.
 * @param group on disk
 * @param rules that allow the mapping; one that permits the group is enough
 * @throws {UnmappableVolume}
 */
export function refuseSystemGroup(
  session: Session,
  volume: DetachedMount,
  group: number,
  rules: readonly SystemGroupRule[],
  table = snapshotMountTable(session.host),
): void {
  if (!rules.every((rule) => isGroupProtected(group, rule))) return
  const { host } = session
  // No file can be created through a read-only mount.
  if (host.inodes.isReadOnly(volume.tree)) return
  const path = findUnprivilegedPath(host, volume, table)
  if (path === undefined) return
  session.note({ systemGroup: { group, path } })
  throw new UnmappableVolume(
    `its group on disk is ${group}, a group of the system, and users of the node reach the volume through a mount without nosuid, ` +
      'so an executable that the pod makes could run with that group: give the volume another group on the node, mount it with nosuid, ' +
      'close a directory above it to others, or have a rule of the node say "systemGroups": true',
  )
}

/** A detached mount, and the directory that it is a clone of; undefined: it is a new mount of its file system. */
interface DetachedMount {
  tree: Handle
  clonedFrom: Handle | undefined
}

/**
 * Finds a path of the node where a set-id file of a volume takes effect for users without privileges. A mount without
 * nosuid shows the volume, a part of it or a directory above it. Such a user may search each directory on the way. The
 * volume's own root counts as searchable, because a pod may be its owner.
 */
function findUnprivilegedPath(host: Host, volume: DetachedMount, table: MountTableSnapshot): string | undefined {
  const rows = parseMountinfo(table.text())
  const isReachable = createUserReachabilityCheck(host, rows)
  const showsVolume = createMountPathFinder(host, volume, table)
  for (const row of rows) {
    if (row.options.includes('nosuid')) continue
    const { path, isCertain } = showsVolume(row) ?? {}
    if (path === undefined || !isReachable(row, path)) continue
    if (isCertain || isPathOnSameFileSystem(host, volume, path)) return path
  }
  return undefined
}

interface PathThroughMount {
  path: string
  /** False where the row may be of another file system. */
  isCertain: boolean
}

function createMountPathFinder(
  host: Host,
  { tree, clonedFrom }: DetachedMount,
  table: MountTableSnapshot,
): (row: MountRow) => PathThroughMount | undefined {
  const location = clonedFrom && createHandleLocationFinder(host, table)(clonedFrom)
  if (location !== undefined) {
    return (row) => {
      const shown = resolveMountRowLocation(row)
      if (!areLocationsNested(shown, location)) return undefined
      const within = resolveRelativePath(shown, location) ?? ''
      const path = within === '' ? row.mountPoint : `${toPathPrefix(row.mountPoint)}/${within}`
      return { path, isCertain: true }
    }
  }
  // A new mount is in no table, and the device of a btrfs subvolume is not the one in the table.
  const { device } = host.inodes.statMountPoint(tree)
  if (isDiskDevice(device)) {
    const name = formatDeviceId(device)
    return ({ device: shown, mountPoint }) => (shown === name ? { path: mountPoint, isCertain: true } : undefined)
  }
  return ({ device: shown, fsType, mountPoint }) => {
    const isCandidate = shown.startsWith('0:') && !isRemoteFsType(fsType) && !isKernelInterfaceFsType(fsType)
    return isCandidate ? { path: mountPoint, isCertain: false } : undefined
  }
}

function isPathOnSameFileSystem({ inodes, blocks }: Host, { tree }: DetachedMount, path: string): boolean {
  const opened = inodes.openTrusted(path)
  using _ = deferHandleClose(inodes, opened)
  return blocks.backingOf(opened).place === blocks.backingOf(tree).place
}

/** A tree of directory names, because each prefix of a long path as text would take quadratic time. */
interface DirectoryNameNode {
  /** Users without privileges may not search the directory. */
  isClosed: boolean
  children: Map<string, DirectoryNameNode>
}

const createDirectoryNameNode = (): DirectoryNameNode => ({ isClosed: false, children: new Map() })

/**
 * Returns whether a user without privileges reaches a path through the mount of a row. The mounts below one closed
 * directory are skipped without a system call, so that the time does not depend on how many pods kubelet has.
 */
function createUserReachabilityCheck(host: Host, rows: readonly MountRow[]): (row: MountRow, path: string) => boolean {
  const mountsTo = createMountFinder(rows)
  const closed = createDirectoryNameNode()
  return (row, path) => {
    const names = path.split('/').filter((name) => name !== '')
    if (isBelowRootOnlyDirectory(closed, names)) return false
    const mounts = mountsTo(path)
    if (mounts.at(-1)?.id !== row.id) return false
    // A server that does not respond would block the lookup, and a name that is not UTF-8 cannot be looked up.
    if (mounts.slice(0, -1).some(({ fsType }) => isRemoteFsType(fsType)) || path.includes('\uFFFD')) return true
    const depth = findRootOnlyDirectory(host, names)
    if (typeof depth === 'number') markDirectoryRootOnly(closed, names.slice(0, depth))
    return depth === undefined
  }
}

function isBelowRootOnlyDirectory(top: DirectoryNameNode, names: readonly string[]): boolean {
  let node: DirectoryNameNode | undefined = top
  for (const name of names) {
    if (node.isClosed) return true
    node = node.children.get(name)
    if (node === undefined) return false
  }
  return false
}

function markDirectoryRootOnly(top: DirectoryNameNode, names: readonly string[]): void {
  const node = names.reduce((above, name) => above.children.getOrInsertComputed(name, createDirectoryNameNode), top)
  node.isClosed = true
}

/**
 * Finds the first directory on the way to a path that users without privileges may not search.
 * @returns how many names lead to it; undefined: they may search all of them
 */
function findRootOnlyDirectory({ inodes }: Host, names: readonly string[]): number | 'missing' | undefined {
  using opened = new DisposableStack()
  let here = inodes.openTrusted('/')
  opened.use(deferHandleClose(inodes, here))
  for (const [depth, name] of names.entries()) {
    if (isRootOnlyDirectory(inodes, here)) return depth
    try {
      here = inodes.openEntry(here, Buffer.from(name))
    } catch (error) {
      const code = getErrno(error)
      return code === 'ENOENT' || code === 'ENOTDIR' ? 'missing' : undefined
    }
    opened.use(deferHandleClose(inodes, here))
  }
  return undefined
}

const OTHERS_SEARCH_MODE = 0o001
const GROUP_SEARCH_MODE = 0o010

/**
 * Returns whether only root may search a directory. An owner could change the mode; with an ACL, st_mode has the mask.
 */
function isRootOnlyDirectory(inodes: Host['inodes'], directory: Handle): boolean {
  const { mode, uid, gid } = inodes.statMountPoint(directory)
  if ((mode & OTHERS_SEARCH_MODE) !== 0 || uid !== 0) return false
  if ((mode & GROUP_SEARCH_MODE) === 0) return true
  return gid === 0 && readAcl(inodes, directory) === undefined
}
