import { isWithin } from './location-chain.ts'
import { findDeviceRows, type MountRow, parseMountinfo } from './mountinfo.ts'
import {
  createLocationFinder,
  isSameLocation,
  resolveNfsRoot,
  resolvePathInMount,
  resolveRowLocation,
  type TreeLocation,
} from './tree-location.ts'

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
  return findDeviceRows(mountinfo, location.device)
    .map(resolveNfsRoot)
    .flatMap((row) => resolveShownPath(row, location) ?? [])
    .filter((shown) => isWanted(shown) && isVisible(shown))
}

function resolveShownPath(row: MountRow, location: TreeLocation): ShownPath | undefined {
  const path = resolvePathInMount(row, location)
  if (path !== undefined) return { path: path || '/', location, row }
  const part = resolveRowLocation(row)
  return isWithin(part, location) ? { path: row.mountPoint, location: part, row } : undefined
}
