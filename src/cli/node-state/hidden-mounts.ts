import { quoteValue } from '../../errors/refusal.ts'
import { parseVolumePod } from '../../kernel/mount-table/kubelet-volume.ts'
import { type MountRow, parseMountinfo } from '../../kernel/mount-table/mountinfo.ts'
import { findSubmounts } from '../../kernel/mount-table/submounts.ts'
import { toPathPrefix } from '../../kernel/mount-table/tree-location.ts'
import type { MountRecord } from '../../state/mount-record.ts'
import type { Session } from '../../state/session.ts'
import { findVolumeKind } from '../../volume/index.ts'
import { isInternalMount } from '../../volume/second-paths.ts'

/** Mounts inside a directory that a pod does not see, or that a walk does not enter. */
export interface HiddenMounts {
  count: number
  /** The first few mount points. */
  examples: string[]
}

const MAX_HIDDEN_MOUNT_EXAMPLES = 3

/**
 * Finds the mounts inside of the sources of recorded mounts that their pods do not see, also those that came later. The
 * mount table is read once.
 * @returns by mount directory; one without hidden mounts has no entry
 */
export function findHiddenMounts(session: Session, records: readonly MountRecord[]): Map<string, HiddenMounts> {
  const boot = session.host.bootId()
  const binds = records.flatMap(({ directory, source, request, mounted, boot: ofBoot, ended }) => {
    const isBind = findVolumeKind(request.fsType)?.root === 'source' && source !== undefined
    return isBind && mounted !== undefined && ofBoot === boot && ended === undefined ? [{ directory, source }] : []
  })
  if (binds.length === 0) return new Map()
  const paths = binds.flatMap(({ directory, source }) => [directory, source])
  const below = findSubmounts(
    parseMountinfo(session.host.mounts.table()),
    paths.map((path) => ({ path })),
  )
  return new Map(
    binds.flatMap(({ directory, source }) => {
      const seen = new Set(below.get(directory)?.map(({ mountPoint }) => mountPoint.slice(directory.length)))
      const kubelet = parseVolumePod(directory)?.root
      const hidden = below.get(source)?.filter((row) => {
        const isSeen = seen.has(row.mountPoint.slice(toPathPrefix(source).length))
        return !isSeen && !isInternalMount(session, row, kubelet)
      })
      return hidden === undefined || hidden.length === 0 ? [] : [[directory, summarizeHiddenMounts(hidden)]]
    }),
  )
}

/** Finds the mounts inside of a directory that are neither kubelet's nor modekeep's. */
export function findMountsInside(session: Session, directory: string): HiddenMounts | undefined {
  const rows = findSubmounts(parseMountinfo(session.host.mounts.table()), [{ path: directory }]).get(directory) ?? []
  const others = rows.filter((row) => !isInternalMount(session, row))
  return others.length === 0 ? undefined : summarizeHiddenMounts(others)
}

function summarizeHiddenMounts(rows: readonly MountRow[]): HiddenMounts {
  return { count: rows.length, examples: rows.slice(0, MAX_HIDDEN_MOUNT_EXAMPLES).map(({ mountPoint }) => mountPoint) }
}

/** Names the first few mount points, and how many more there are. */
export function formatHiddenMounts({ count, examples }: HiddenMounts): string {
  const more = count - examples.length
  const shown = examples.map((path) => quoteValue(path)).join(', ')
  return more > 0 ? `${shown} and ${more} more` : shown
}
