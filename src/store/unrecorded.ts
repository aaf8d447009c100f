import { isOwnVolume, parsePodVolume } from '../mount-table/kubelet-volume.ts'
import type { MountRow } from '../mount-table/mountinfo.ts'
import { hasMountRecord } from './mount-record.ts'
import type { Store } from './places.ts'

/**
 * What of the table is a volume of modekeep's by its place, and on no record: that was lost, and with it the group that
 * the pod relies on. Where kubelet's directory is bind-mounted, each mount shows at a second place too, which is none.
 * @param matters asked before a file is read to tell whose volume it is
 * @returns mount points; one may have been unmounted, and its record removed, after the table was read
 */
export function unrecordedMounts(
  store: Store,
  table: readonly MountRow[],
  matters: (mountPoint: string) => boolean = () => true,
): string[] {
  const places = new Set(
    table.map(({ mountPoint }) => mountPoint).filter((place) => parsePodVolume(place) !== undefined),
  )
  const recorded = new Set([...places].filter((place) => hasMountRecord(store, place)).map(parsePodVolume))
  return [...places].filter(
    (place) => !recorded.has(parsePodVolume(place)) && matters(place) && isOwnVolume(store.host, place),
  )
}
