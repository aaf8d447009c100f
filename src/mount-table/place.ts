import { type MountRow, parseMountinfo } from './mountinfo.ts'

/** Where a directory lies: the same whatever mount leads to it. */
export interface Place {
  /** The file system, as mountinfo's major:minor. */
  device: string
  /** From the file system's own root, which is ''; subvolumes are directories of it. */
  path: string
}

/** Whether one of two directories lies in the other, or both are one. */
export function isNested(one: Place, other: Place): boolean {
  return one.device === other.device && areNested(one.path, other.path)
}

/** The same for paths without a trailing slash; '' is the root. */
export function areNested(one: string, other: string): boolean {
  return `${one}/`.startsWith(`${other}/`) || `${other}/`.startsWith(`${one}/`)
}

/**
 * Finds the places of directories from the text of mountinfo.
 * @returns for an absolute, normal path without links: its place, undefined where the table has no root mount
 */
export function placesFrom(mountinfo: string): (path: string) => Place | undefined {
  const rows = parseMountinfo(mountinfo)
  const children = Map.groupBy(rows, ({ parent }) => parent)
  const ids = new Set(rows.map(({ id }) => id))
  const root = rows.find(({ id, parent, mountPoint }) => mountPoint === '/' && (parent === id || !ids.has(parent)))
  return (path) => {
    const mount = root && topmost(root, path, children)
    return mount && placeIn(mount, path)
  }
}

/**
 * Down from mount to mount as the kernel finds a path: of the mounts on this one, the first on the way counts. Others
 * may be listed that it hides.
 */
function topmost(mount: MountRow, path: string, children: Map<number, MountRow[]>): MountRow {
  let first: MountRow | undefined
  for (const row of children.get(mount.id) ?? []) {
    if (row.id === mount.id || !isBelow(path, row.mountPoint)) continue
    if (first === undefined || row.mountPoint.length < first.mountPoint.length) first = row
  }
  return first ? topmost(first, path, children) : mount
}

function placeIn({ device, root, mountPoint }: MountRow, path: string): Place {
  return { device, path: `${asPrefix(root)}${asPrefix(path).slice(asPrefix(mountPoint).length)}` }
}

function isBelow(path: string, directory: string): boolean {
  return `${asPrefix(path)}/`.startsWith(`${asPrefix(directory)}/`)
}

function asPrefix(path: string): string {
  return path === '/' ? '' : path
}
