import { quoteValue } from '../../errors/refusal.ts'
import type { Handle, Host } from '../host.ts'
import { findDeviceMountRows, type MountRow, parseMountinfo } from './mountinfo.ts'
import {
  createLocationFinder,
  createMountFinder,
  hashPath,
  isLocationWithin,
  isSameLocation,
  listPathPrefixHashes,
  resolveMountRowLocation,
  resolveNfsRoot,
  resolvePathInMount,
  type TreeLocation,
} from './tree-location.ts'

/** A directory, and the mount that shows it, to which the mounts below the directory are attached. */
export interface SubmountQuery {
  /** An absolute, normalized path without links. */
  path: string
  /** The mount id in mountinfo. If undefined, the mount that the path leads to is used. */
  mountId?: number
}

/** Finds the mounts below an open directory. Reads the mount table only if the kernel reports mounts on its mount. */
export function readSubmounts({ mounts, inodes }: Host, directory: Handle, path: string): MountRow[] {
  if (mounts.hasMountsOn(inodes.statMountPoint(directory).mountId) === false) return []
  const query = { path, mountId: mounts.tableId(directory) }
  return findSubmounts(parseMountinfo(mounts.table()), [query]).get(path) ?? []
}

/**
 * Finds the mounts below directories, which may contain one another. One pass over the rows keeps the time linear in the
 * table's length and in the number of mounts that are found.
 * @returns the rows of each path, parents first
 */
export function findSubmounts(rows: readonly MountRow[], queries: readonly SubmountQuery[]): Map<string, MountRow[]> {
  const wanted = new Map(queries.map((query) => [query.path, query]))
  const byHash = Map.groupBy(wanted.keys(), hashPath)
  const below = new Map<string, MountRow[]>()
  for (const row of rows) {
    for (const { hash, length } of listPathPrefixHashes(row.mountPoint)) {
      if (length === row.mountPoint.length) continue
      for (const path of byHash.get(hash) ?? []) {
        if (path.length !== length || !row.mountPoint.startsWith(path)) continue
        below.getOrInsertComputed(path, () => []).push(row)
      }
    }
  }
  let mountsTo: ReturnType<typeof createMountFinder> | undefined
  const findMountId = (path: string) => {
    mountsTo ??= createMountFinder(rows)
    return mountsTo(path).at(-1)?.id
  }
  return new Map(
    [...below].map(([path, found]) => {
      const top = wanted.get(path)?.mountId ?? findMountId(path)
      return [path, selectDescendantMounts(found, top)]
    }),
  )
}

/** Drops rows that are attached to another mount of the same path, which lies below or above the directory's mount. */
function selectDescendantMounts(rows: readonly MountRow[], top: number | undefined): MountRow[] {
  const children = Map.groupBy(rows, ({ parent }) => parent)
  const found = new Set(top === undefined ? [] : children.get(top))
  // The iteration of a set includes elements that are added during it.
  for (const { id } of found) for (const row of children.get(id) ?? []) found.add(row)
  return [...found]
}

const MAX_LISTED_MOUNTS = 3

/** Names mounts for a message: the first few, and how many there are. */
export function formatMountList(rows: readonly Pick<MountRow, 'mountPoint' | 'fsType'>[]): string {
  const shown = rows
    .slice(0, MAX_LISTED_MOUNTS)
    .map(({ mountPoint, fsType }) => `${quoteValue(mountPoint)} (${fsType})`)
  const more = rows.length - shown.length
  return more > 0 ? `${shown.join(', ')} and ${more} more` : shown.join(', ')
}

/** A path at which a mount shows a location, or a part of it. */
export interface ShownPath {
  path: string
  /** The location at this path: the given one, or the part of it that is mounted there. */
  location: TreeLocation
  row: MountRow
}

/**
 * Finds the paths at which mounts show a location or a part of it. A path that another mount covers has another location and
 * is skipped.
 * @param isWanted selects paths before the whole table is parsed for the mounts that cover them
 * @returns at most one for each mount; the time is linear in the table's length
 */
export function findShownPaths(
  mountinfo: string,
  location: TreeLocation,
  isWanted: (shown: ShownPath) => boolean,
): ShownPath[] {
  let locationAt: ReturnType<typeof createLocationFinder> | undefined
  const isVisible = ({ path, location }: ShownPath) => {
    locationAt ??= createLocationFinder(parseMountinfo(mountinfo).map(resolveNfsRoot))
    const there = locationAt(path)
    return there !== undefined && isSameLocation(there, location)
  }
  return findDeviceMountRows(mountinfo, location.device)
    .map(resolveNfsRoot)
    .flatMap((row) => resolveShownPath(row, location) ?? [])
    .filter((shown) => isWanted(shown) && isVisible(shown))
}

function resolveShownPath(row: MountRow, location: TreeLocation): ShownPath | undefined {
  const path = resolvePathInMount(row, location)
  if (path !== undefined) return { path: path || '/', location, row }
  const part = resolveMountRowLocation(row)
  return isLocationWithin(part, location) ? { path: row.mountPoint, location: part, row } : undefined
}
