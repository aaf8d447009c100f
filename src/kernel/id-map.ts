/** A range of `count` ids, stored from `disk` on and shown from `shown` on. */
export interface IdRange {
  disk: number
  shown: number
  count: number
}

/** The owners and groups that a mount shows. Ids outside of all ranges appear as the kernel's overflow id. */
export interface IdMap {
  uids: readonly IdRange[]
  gids: readonly IdRange[]
}

/** (gid_t)-1 names no group. */
export const HIGHEST_UID_OR_GID = 2 ** 32 - 2

export const IDENTITY_ID_RANGES: readonly IdRange[] = [{ disk: 0, shown: 0, count: HIGHEST_UID_OR_GID + 1 }]

// Linux limits: UID_GID_MAP_MAX_EXTENTS ranges, and less than a page of text (map_write() in kernel/user_namespace.c).
// The smallest page has 4096 bytes.
const MAX_ID_MAP_RANGES = 340
const MAX_ID_MAP_BYTES = 4095

/** Exchanges two different groups. Every other id stays the same. */
export function createGroupSwapMap(groupId: number, otherGroupId: number): IdMap {
  const low = Math.min(groupId, otherGroupId)
  const high = Math.max(groupId, otherGroupId)
  if (low === high || low < 0 || high > HIGHEST_UID_OR_GID)
    throw new Error(`no two groups to swap: ${groupId} and ${otherGroupId}`)
  const ranges: IdRange[] = [
    { disk: 0, shown: 0, count: low },
    { disk: low, shown: high, count: 1 },
    { disk: low + 1, shown: low + 1, count: high - low - 1 },
    { disk: high, shown: low, count: 1 },
    { disk: high + 1, shown: high + 1, count: HIGHEST_UID_OR_GID - high },
  ]
  return { uids: IDENTITY_ID_RANGES, gids: ranges.filter(({ count }) => count !== 0) }
}

/** Combines two mappings: ids that the first shows are the stored ids of the second. */
export function composeIdMaps(first: IdMap, second: IdMap): IdMap {
  return { uids: composeIdRanges(first.uids, second.uids), gids: composeIdRanges(first.gids, second.gids) }
}

function composeIdRanges(first: readonly IdRange[], second: readonly IdRange[]): IdRange[] {
  const pieces = first.flatMap((one) =>
    second.flatMap((two): IdRange[] => {
      const start = Math.max(one.shown, two.disk)
      const count = Math.min(one.shown + one.count, two.disk + two.count) - start
      return count > 0 ? [{ disk: one.disk + start - one.shown, shown: two.shown + start - two.disk, count }] : []
    }),
  )
  return joinAdjacentIdRanges(pieces.sort((a, b) => a.disk - b.disk))
}

/** Merges a range into its predecessor if it continues both sides. */
function joinAdjacentIdRanges(sorted: readonly IdRange[]): IdRange[] {
  const ranges: IdRange[] = []
  for (const range of sorted) {
    const previous = ranges.at(-1)
    const isAdjacent =
      previous?.disk === range.disk - (previous?.count ?? 0) && previous.shown === range.shown - previous.count
    if (previous !== undefined && isAdjacent) previous.count += range.count
    else ranges.push({ ...range })
  }
  return ranges
}

/** Returns undefined if the stored id appears as the overflow id. */
export function mapToShownId(ranges: readonly IdRange[], id: number): number | undefined {
  const range = ranges.find(({ disk, count }) => id >= disk && id < disk + count)
  return range && range.shown + id - range.disk
}

/** Formats a uid_map or gid_map, user_namespaces(7). In a mount's map the stored ids are the inside ids. */
export function formatIdRanges(ranges: readonly IdRange[]): string {
  return ranges.map(({ disk, shown, count }) => `${disk} ${shown} ${count}\n`).join('')
}

/** Returns a clause with the reason for which the kernel would reject the mapping, or undefined if it accepts it. */
export function describeIdMapFault({ uids, gids }: IdMap): string | undefined {
  for (const [kind, ranges] of [['users', uids] as const, ['groups', gids] as const]) {
    if (ranges.length === 0) return `its ${kind} would have no id at all`
    if (ranges.length > MAX_ID_MAP_RANGES)
      return `its ${kind} would need ${ranges.length} ranges of ids, Linux takes ${MAX_ID_MAP_RANGES}`
    const { length } = formatIdRanges(ranges)
    if (length > MAX_ID_MAP_BYTES)
      return `the ranges of its ${kind} would need ${length} bytes, Linux takes ${MAX_ID_MAP_BYTES}`
    const overlap = findIdRangeOverlap(ranges, 'disk') ?? findIdRangeOverlap(ranges, 'shown')
    if (overlap !== undefined) return `the ranges ${overlap} of its ${kind} overlap`
  }
  return undefined
}

/** The kernel rejects a map with EINVAL if two ranges overlap on either side (mappings_overlap() in kernel/user_namespace.c). */
function findIdRangeOverlap(ranges: readonly IdRange[], side: 'disk' | 'shown'): string | undefined {
  const sorted = [...ranges].sort((a, b) => a[side] - b[side])
  for (const [index, range] of sorted.entries()) {
    const next = sorted[index + 1]
    if (next === undefined || range[side] + range.count <= next[side]) continue
    const [one, other] = [range, next].map((each) => `${each[side]} to ${each[side] + each.count - 1}`)
    return `${one} and ${other}`
  }
  return undefined
}
