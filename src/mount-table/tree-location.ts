import type { Handle, Host } from '../host/host.ts'
import { type MountRow, parseMountinfo } from './mountinfo.ts'

/** Where a directory lies: the same whatever mount leads to it. */
export interface TreeLocation {
  /** The file system, as mountinfo's major:minor. */
  device: string
  /** From the file system's own root, which is ''; subvolumes are directories of it. */
  path: string
}

/** What a mount shows. */
export function locationOfRow({ device, root }: MountRow): TreeLocation {
  return { device, path: asPrefix(root) }
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

/** The mounts on one mount, by mount point: of those that are listed with the same one, the first. */
type Children = Map<number, Map<string, MountRow>>

/**
 * Finds the locations of directories from the text of mountinfo.
 * @returns for an absolute, normal path without links: its location, undefined where the table has no root mount. It takes
 * as long for many mounts as for few
 */
export function locationsFrom(mountinfo: string): (path: string) => TreeLocation | undefined {
  const rows = parseMountinfo(mountinfo)
  const children = childrenOf(rows)
  const ids = new Set(rows.map(({ id }) => id))
  const root = rows.find(({ id, parent, mountPoint }) => mountPoint === '/' && (parent === id || !ids.has(parent)))
  return (path) => {
    const mount = root && topmost(root, pathsTo(path), children, rows.length)
    return mount && placeIn(mount, path)
  }
}

function childrenOf(rows: readonly MountRow[]): Children {
  const children: Children = new Map()
  for (const row of rows) {
    if (row.id === row.parent) continue
    const there = children.get(row.parent) ?? new Map<string, MountRow>()
    children.set(row.parent, there)
    if (!there.has(row.mountPoint)) there.set(row.mountPoint, row)
  }
  return children
}

/** The path and all above it, the shortest first. */
function pathsTo(path: string): string[] {
  const paths = ['/']
  for (let slash = path.indexOf('/', 1); slash > 0; slash = path.indexOf('/', slash + 1))
    paths.push(path.slice(0, slash))
  return path === '/' ? paths : paths.concat(path)
}

/**
 * Down from mount to mount as the kernel finds a path: of the mounts on this one, the first on the way counts. Others
 * may be listed that it hides.
 * @param deepest how many mounts can lie on one another: a table that changes while it is read may have an id twice, and
 * lead in a circle
 */
function topmost(mount: MountRow, paths: readonly string[], children: Children, deepest: number): MountRow {
  const there = children.get(mount.id)
  const first = there && paths.find((path) => there.has(path))
  const next = first === undefined ? undefined : there?.get(first)
  return next && deepest > 0 ? topmost(next, paths, children, deepest - 1) : mount
}

function placeIn(row: MountRow, path: string): TreeLocation {
  const shown = locationOfRow(row)
  return { ...shown, path: `${shown.path}${asPrefix(path).slice(asPrefix(row.mountPoint).length)}` }
}

function asPrefix(path: string): string {
  return path === '/' ? '' : path
}

/** Where a new mount lies that is no clone, and not in the mount table yet. */
export function locationOfTree({ inodes }: Host, tree: Handle): TreeLocation {
  const { device } = inodes.stat(tree)
  const [major, minor] = [Math.floor(device / 2 ** 20), device % 2 ** 20]
  const path = inodes.pathOf(tree)
  return { device: major === 0 ? '' : `${major}:${minor}`, path: path === '/' ? '' : path }
}
