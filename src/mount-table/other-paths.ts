import { isWithin } from './location-chain.ts'
import { type MountRow, parseMountinfo, rowsOfDevice } from './mountinfo.ts'
import {
  isSameLocation,
  locationOfRow,
  locationsFrom,
  pathInMount,
  type TreeLocation,
  withRealRoot,
} from './tree-location.ts'

/** A path at which a mount shows a location, or a part of it. */
export interface ShownPath {
  path: string
  /** Where it leads: the location, or the part that is mounted there. */
  location: TreeLocation
  row: MountRow
}

/**
 * Finds the paths at which mounts show a location or a part of it. A path that another mount covers leads elsewhere and is
 * left out.
 * @param isWanted selects paths before the whole table is parsed for the mounts that cover them
 * @returns at most one for each mount; the time is linear in the table's length
 */
export function findShownPaths(
  mountinfo: string,
  location: TreeLocation,
  isWanted: (shown: ShownPath) => boolean,
): ShownPath[] {
  let locationAt: ReturnType<typeof locationsFrom> | undefined
  const isVisible = ({ path, location }: ShownPath) => {
    locationAt ??= locationsFrom(parseMountinfo(mountinfo).map(withRealRoot))
    const there = locationAt(path)
    return there !== undefined && isSameLocation(there, location)
  }
  return rowsOfDevice(mountinfo, location.device)
    .map(withRealRoot)
    .flatMap((row) => shownBy(row, location) ?? [])
    .filter((shown) => isWanted(shown) && isVisible(shown))
}

function shownBy(row: MountRow, location: TreeLocation): ShownPath | undefined {
  const path = pathInMount(row, location)
  if (path !== undefined) return { path: path || '/', location, row }
  const part = locationOfRow(row)
  return isWithin(part, location) ? { path: row.mountPoint, location: part, row } : undefined
}
