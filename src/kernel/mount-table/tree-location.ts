import { formatDeviceId, type Handle, type Host, isDiskDevice } from '../host.ts'
import { type MountRow, type MountTableSnapshot, parseMountinfo, snapshotMountTable } from './mountinfo.ts'

/** The location of a directory. It is the same through every mount that leads to it. */
export interface TreeLocation {
  /** The file system, as mountinfo's major:minor. */
  device: string
  /** The path from the root of the file system, which is ''. Subvolumes are directories of it. */
  path: string
}

/** Returns the location that a mount shows. */
export function resolveMountRowLocation({ device, root }: MountRow): TreeLocation {
  return { device, path: toPathPrefix(root) }
}

export function isSameLocation(one: TreeLocation, other: TreeLocation): boolean {
  return one.device === other.device && one.path === other.path
}

/** Checks whether one of two locations equals the other or lies in it. */
export function areLocationsNested(one: TreeLocation, other: TreeLocation): boolean {
  return isLocationWithin(one, other) || isLocationWithin(other, one)
}

/** Checks whether one of two paths equals the other or lies in it. They have no trailing slash; '' is the root. */
export function arePathsNested(one: string, other: string): boolean {
  return `${one}/`.startsWith(`${other}/`) || `${other}/`.startsWith(`${one}/`)
}

/**
 * Creates a function that finds locations of directories in the text of mountinfo, or in its rows.
 * @returns for an absolute, normalized path without links: its location, or undefined if the table has no root mount. The
 * time does not depend on the number of mounts
 */
export function createLocationFinder(table: string | readonly MountRow[]): (path: string) => TreeLocation | undefined {
  const mountsTo = createMountFinder(table)
  return (path) => {
    const mount = mountsTo(path).at(-1)
    return mount && resolveLocationInMount(mount, path)
  }
}

/**
 * Creates a function that finds the mounts that a path leads through, from mount to mount as the kernel does. The table also
 * lists covered mounts; of several with the same parent and mount point the first counts.
 * @returns for an absolute, normalized path without links: all these mounts, the deepest one last
 */
export function createMountFinder(table: string | readonly MountRow[]): (path: string) => MountRow[] {
  const rows = typeof table === 'string' ? parseMountinfo(table) : table
  const ids = new Set(rows.map(({ id }) => id))
  const root = rows.find(({ id, parent, mountPoint }) => mountPoint === '/' && (parent === id || !ids.has(parent)))
  const below = Map.groupBy(
    rows.filter(({ id, parent }) => id !== parent),
    ({ parent, mountPoint }) => combineHashKey(parent, hashPath(mountPoint)),
  )
  return (written) => {
    const path = normalizePath(written)
    const mounts = root === undefined ? [] : [root]
    // A table that changes while it is read may have an id twice and contain a circle.
    let deepest = rows.length
    const childAt = (hash: number, length: number) => {
      const parent = mounts.at(-1)?.id ?? Number.NaN
      const isThere = (row: MountRow) =>
        row.parent === parent && row.mountPoint.length === length && path.startsWith(row.mountPoint)
      return below.get(combineHashKey(parent, hash))?.find(isThere)
    }
    for (const { hash, length } of listPathPrefixHashes(path)) {
      for (let child = childAt(hash, length); child && deepest > 0; child = childAt(hash, length)) {
        mounts.push(child)
        deepest--
      }
    }
    return mounts
  }
}

function normalizePath(path: string): string {
  return `/${path
    .split('/')
    .filter((name) => name !== '')
    .join('/')}`
}

const SLASH_CHARACTER_CODE = 47
const PATH_HASH_START = 0

const addCharacterToHash = (hash: number, code: number) => (Math.imul(hash, 31) + code) | 0
const combineHashKey = (parent: number, hash: number) => Math.imul(hash ^ parent, 0x9e3779b1)

export function hashPath(text: string): number {
  let hash = PATH_HASH_START
  for (let at = 0; at < text.length; at++) hash = addCharacterToHash(hash, text.charCodeAt(at))
  return hash
}

/** Hashes a path and all paths above it, the shortest first, in one pass that copies no prefix. */
export function* listPathPrefixHashes(path: string): Generator<{ hash: number; length: number }> {
  yield { hash: hashPath('/'), length: 1 }
  if (path === '/') return
  let hash = PATH_HASH_START
  for (let at = 0; at < path.length; at++) {
    const code = path.charCodeAt(at)
    if (code === SLASH_CHARACTER_CODE && at > 0) yield { hash, length: at }
    hash = addCharacterToHash(hash, code)
  }
  yield { hash, length: path.length }
}

function resolveLocationInMount(row: MountRow, path: string): TreeLocation {
  const shown = resolveMountRowLocation(row)
  return { ...shown, path: `${shown.path}${toPathPrefix(path).slice(toPathPrefix(row.mountPoint).length)}` }
}

/** Converts an absolute path to a prefix, to which a slash and a name can be appended: "/" becomes "". */
export function toPathPrefix(path: string): string {
  return path === '/' ? '' : path
}

/** Finds all paths of the node that lead to the same location as one path, through any mount of its file system. */
export function findPathsToSameLocation(mountinfo: string, path: string): string[] {
  const rows = parseMountinfo(mountinfo)
  const there = createLocationFinder(rows)(path)
  if (there === undefined) return [path]
  return rows.flatMap((row) => resolvePathInMount(row, there) ?? [])
}

/** Returns the path at which a mount shows a location, or undefined if it does not show it. */
export function resolvePathInMount(row: MountRow, location: TreeLocation): string | undefined {
  const shown = resolveMountRowLocation(row)
  if (!isLocationWithin(location, shown)) return undefined
  return `${toPathPrefix(row.mountPoint)}${location.path.slice(shown.path.length)}`
}

/** A location with the options of the mount that shows it. */
export interface MountedLocation extends TreeLocation {
  options: readonly string[]
}

/**
 * Creates a function that finds the location of a handle's inode by the mount through which the handle was opened. It looks up
 * no path again, and reads the mount table at the first call.
 * @returns undefined if that mount was unmounted, or the inode was removed
 */
export function createHandleLocationFinder(
  { inodes, mounts }: Host,
  { findRow } = snapshotMountTable({ mounts }),
): (handle: Handle) => MountedLocation | undefined {
  return (handle) => {
    const row = findRow(mounts.tableId(handle))
    const path = inodes.pathOf(handle)
    if (row === undefined || !`${path}/`.startsWith(`${toPathPrefix(row.mountPoint)}/`)) return undefined
    return { ...resolveLocationInMount(resolveNfsRoot(row), path), options: row.options }
  }
}

/** Takes the root of an NFS mount from its source, because its row has the root "/" (fs/nfs/super.c, nfs_show_path). */
export function resolveNfsRoot(row: MountRow): MountRow {
  return /^nfs4?$/.test(row.fsType) ? { ...row, root: row.source.replace(/\/+$/, '') } : row
}

/** Returns the path of one location inside another: '' if they are equal, undefined if it does not lie inside. */
export function resolveRelativePath(whole: TreeLocation, part: TreeLocation): string | undefined {
  // Bytes that are not UTF-8 are decoded to U+FFFD, so different names can look equal.
  if (!isLocationWithin(part, whole) || whole.path.includes('\uFFFD')) return undefined
  return part.path.slice(whole.path.length + 1)
}

/** Returns the location of a new mount that is not a clone and not yet in the mount table. */
export function resolveTreeLocation({ inodes }: Host, tree: Handle): TreeLocation {
  const { device } = inodes.stat(tree)
  return { device: isDiskDevice(device) ? formatDeviceId(device) : '', path: toPathPrefix(inodes.pathOf(tree)) }
}

/**
 * Finds the locations that the path of a handle leads through: its own, then that of each mount point above it, up to the
 * root. Mounts are found by their ids, so a bind mount of a directory has the same location as the directory.
 * @returns as many as there are mounts on the path; none where its mount is not mounted any more
 */
export function findLocationChain({ inodes, mounts }: Host, table: MountTableSnapshot, handle: Handle): TreeLocation[] {
  const chain: TreeLocation[] = []
  // A table that changes while it is read may contain a circle.
  const visited = new Set<number>()
  let path = inodes.pathOf(handle)
  let row = table.findRow(mounts.tableId(handle))
  while (row !== undefined && !visited.has(row.id) && `${path}/`.startsWith(`${toPathPrefix(row.mountPoint)}/`)) {
    chain.push(resolveLocationInMount(row, path))
    visited.add(row.id)
    path = row.mountPoint
    row = table.findRow(row.parent)
  }
  return chain
}

/** Checks whether one location equals another or lies in it. */
export function isLocationWithin(part: TreeLocation, whole: TreeLocation): boolean {
  return part.device === whole.device && `${part.path}/`.startsWith(`${whole.path}/`)
}
