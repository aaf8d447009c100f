import { deviceName, type Handle, type Host, hasDisk } from '../host/host.ts'
import { type MountRow, parseMountinfo } from './mountinfo.ts'
import { snapshotTable } from './table-snapshot.ts'

/** Where a directory lies: the same whatever mount leads to it. */
export interface TreeLocation {
  /** The file system, as mountinfo's major:minor. */
  device: string
  /** From the file system's own root, which is ''; subvolumes are directories of it. */
  path: string
}

/** What a mount shows. */
export function resolveRowLocation({ device, root }: MountRow): TreeLocation {
  return { device, path: toPathPrefix(root) }
}

export function isSameLocation(one: TreeLocation, other: TreeLocation): boolean {
  return one.device === other.device && one.path === other.path
}

/** Whether one of two directories lies in the other, or both are one. */
export function isNested(one: TreeLocation, other: TreeLocation): boolean {
  return one.device === other.device && areNested(one.path, other.path)
}

/** The same for paths without a trailing slash; '' is the root. */
export function areNested(one: string, other: string): boolean {
  return `${one}/`.startsWith(`${other}/`) || `${other}/`.startsWith(`${one}/`)
}

/**
 * Finds the locations of directories from the text of mountinfo, or its rows.
 * @returns for an absolute, normal path without links: its location, undefined where the table has no root mount. It
 * takes as long for many mounts as for few
 */
export function createLocationFinder(table: string | readonly MountRow[]): (path: string) => TreeLocation | undefined {
  const mountsTo = createMountFinder(table)
  return (path) => {
    const mount = mountsTo(path).at(-1)
    return mount && resolveLocationInMount(mount, path)
  }
}

/**
 * Finds the mounts that a path leads through, down from mount to mount as the kernel finds it. The table lists also
 * mounts that others hide; of those with one parent and one mount point the first counts.
 * @returns for an absolute, normal path without links: them all, the one that it leads to last
 */
export function createMountFinder(table: string | readonly MountRow[]): (path: string) => MountRow[] {
  const rows = typeof table === 'string' ? parseMountinfo(table) : table
  const ids = new Set(rows.map(({ id }) => id))
  const root = rows.find(({ id, parent, mountPoint }) => mountPoint === '/' && (parent === id || !ids.has(parent)))
  const below = Map.groupBy(
    rows.filter(({ id, parent }) => id !== parent),
    ({ parent, mountPoint }) => combineKey(parent, hashPath(mountPoint)),
  )
  return (written) => {
    const path = normalize(written)
    const mounts = root === undefined ? [] : [root]
    // A table that changes while it is read may have an id twice, and lead in a circle.
    let deepest = rows.length
    const childAt = (hash: number, length: number) => {
      const parent = mounts.at(-1)?.id ?? Number.NaN
      const isThere = (row: MountRow) =>
        row.parent === parent && row.mountPoint.length === length && path.startsWith(row.mountPoint)
      return below.get(combineKey(parent, hash))?.find(isThere)
    }
    for (const { hash, length } of prefixHashes(path)) {
      for (let child = childAt(hash, length); child && deepest > 0; child = childAt(hash, length)) {
        mounts.push(child)
        deepest--
      }
    }
    return mounts
  }
}

function normalize(path: string): string {
  return `/${path
    .split('/')
    .filter((name) => name !== '')
    .join('/')}`
}

const SLASH = 47
const START = 0

const addToHash = (hash: number, code: number) => (Math.imul(hash, 31) + code) | 0
const combineKey = (parent: number, hash: number) => Math.imul(hash ^ parent, 0x9e3779b1)

export function hashPath(text: string): number {
  let hash = START
  for (let at = 0; at < text.length; at++) hash = addToHash(hash, text.charCodeAt(at))
  return hash
}

/**
 * Hashes a path and all paths above it, the shortest first, in one pass: no prefix is copied, so the time is linear in
 * the path's length.
 */
export function* prefixHashes(path: string): Generator<{ hash: number; length: number }> {
  yield { hash: hashPath('/'), length: 1 }
  if (path === '/') return
  let hash = START
  for (let at = 0; at < path.length; at++) {
    const code = path.charCodeAt(at)
    if (code === SLASH && at > 0) yield { hash, length: at }
    hash = addToHash(hash, code)
  }
  yield { hash, length: path.length }
}

export function resolveLocationInMount(row: MountRow, path: string): TreeLocation {
  const shown = resolveRowLocation(row)
  return { ...shown, path: `${shown.path}${toPathPrefix(path).slice(toPathPrefix(row.mountPoint).length)}` }
}

/** An absolute path, to which more is added by a slash. */
export function toPathPrefix(path: string): string {
  return path === '/' ? '' : path
}

/** Every path of the node that leads to what lies at one, by whatever mount of its file system. */
export function findPathsToSame(mountinfo: string, path: string): string[] {
  const rows = parseMountinfo(mountinfo)
  const there = createLocationFinder(rows)(path)
  if (there === undefined) return [path]
  return rows.flatMap((row) => resolvePathInMount(row, there) ?? [])
}

/** The path at which a mount shows a location; undefined: it does not show it. */
export function resolvePathInMount(row: MountRow, { device, path }: TreeLocation): string | undefined {
  const shown = resolveRowLocation(row)
  const isShown = device === shown.device && `${path}/`.startsWith(`${shown.path}/`)
  return isShown ? `${toPathPrefix(row.mountPoint)}${path.slice(shown.path.length)}` : undefined
}

/** A location, with the options of the mount that shows it. */
export interface MountedLocation extends TreeLocation {
  options: readonly string[]
}

/**
 * Where the inodes of handles lie, each by the mount that it was opened through: no path is looked up once more. The mount
 * table is read at the first.
 * @returns undefined where that mount is not mounted any more, or the inode was removed
 */
export function createHandleLocationFinder(
  { inodes, mounts }: Host,
  { findRow } = snapshotTable({ mounts }),
): (handle: Handle) => MountedLocation | undefined {
  return (handle) => {
    const row = findRow(mounts.tableId(handle))
    const path = inodes.pathOf(handle)
    if (row === undefined || !`${path}/`.startsWith(`${toPathPrefix(row.mountPoint)}/`)) return undefined
    return { ...resolveLocationInMount(resolveNfsRoot(row), path), options: row.options }
  }
}

/** Each row of NFS has the root "/" (fs/nfs/super.c, nfs_show_path), and a source that has the path. */
export function resolveNfsRoot(row: MountRow): MountRow {
  return /^nfs4?$/.test(row.fsType) ? { ...row, root: row.source.replace(/\/+$/, '') } : row
}

/** The path of one directory or file in another; '': they are one. Undefined: it is not in it. */
export function resolveRelativePath(whole: TreeLocation, part: TreeLocation): string | undefined {
  const isWithin = whole.device === part.device && `${part.path}/`.startsWith(`${whole.path}/`)
  // Names that are not UTF-8 are read so, and different ones may read alike.
  if (!isWithin || whole.path.includes('\uFFFD')) return undefined
  return part.path.slice(whole.path.length + 1)
}

/** Where a new mount lies that is no clone, and not in the mount table yet. */
export function resolveTreeLocation({ inodes }: Host, tree: Handle): TreeLocation {
  const { device } = inodes.stat(tree)
  return { device: hasDisk(device) ? deviceName(device) : '', path: toPathPrefix(inodes.pathOf(tree)) }
}
