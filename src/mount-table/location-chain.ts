import type { Handle, Host } from '../host/host.ts'
import type { TableSnapshot } from './table-snapshot.ts'
import { resolveLocationInMount, type TreeLocation, toPathPrefix } from './tree-location.ts'

/**
 * Finds the locations that the path of a handle leads through: its own, then that of each mount point above it, up to the
 * root. Mounts are found by their ids, so a bind mount of a directory has the same location as the directory.
 * @returns as many as there are mounts on the path; none where its mount is not mounted any more
 */
export function locationChain({ inodes, mounts }: Host, table: TableSnapshot, handle: Handle): TreeLocation[] {
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
export function isWithin(part: TreeLocation, whole: TreeLocation): boolean {
  return part.device === whole.device && `${part.path}/`.startsWith(`${whole.path}/`)
}
