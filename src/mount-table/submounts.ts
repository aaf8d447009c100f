import { quoted } from '../errors/refusal.ts'
import type { Handle, Host } from '../host/host.ts'
import { type MountRow, parseMountinfo } from './mountinfo.ts'
import { createMountFinder, hashPath, prefixHashes } from './tree-location.ts'

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
    for (const { hash, length } of prefixHashes(row.mountPoint)) {
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
      return [path, selectDescendants(found, top)]
    }),
  )
}

/** Drops rows that are attached to another mount of the same path, which lies below or above the directory's mount. */
function selectDescendants(rows: readonly MountRow[], top: number | undefined): MountRow[] {
  const children = Map.groupBy(rows, ({ parent }) => parent)
  const found = new Set(top === undefined ? [] : children.get(top))
  // The iteration of a set includes elements that are added during it.
  for (const { id } of found) for (const row of children.get(id) ?? []) found.add(row)
  return [...found]
}

const MOST_SHOWN = 3

/** Names mounts for a message: the first few, and how many there are. */
export function formatMounts(rows: readonly Pick<MountRow, 'mountPoint' | 'fsType'>[]): string {
  const shown = rows.slice(0, MOST_SHOWN).map(({ mountPoint, fsType }) => `${quoted(mountPoint)} (${fsType})`)
  const more = rows.length - shown.length
  return more > 0 ? `${shown.join(', ')} and ${more} more` : shown.join(', ')
}
