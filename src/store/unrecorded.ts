import { isOwnVolume, isSameVolume } from '../mount-table/kubelet-volume.ts'
import type { MountRow } from '../mount-table/mountinfo.ts'
import { hasMountRecord } from './mount-record.ts'
import type { Store } from './places.ts'

/**
 * What of the table is a volume of modekeep's by its place, and on no record: that was lost, and with it the group that
 * the pod relies on. Where kubelet's directory is bind-mounted, each mount shows at a second place too, which is none.
 * @returns mount points; one may have been unmounted, and its record removed, after the table was read
 */
export function unrecordedMounts(store: Store, table: readonly MountRow[]): string[] {
  const places = [...new Set(table.map(({ mountPoint }) => mountPoint))]
  const { true: recorded = [], false: others = [] } = Object.groupBy(
    places.filter((place) => isOwnVolume(store.host, place)),
    (place) => (hasMountRecord(store, place) ? 'true' : 'false'),
  )
  return others.filter((place) => !recorded.some((other) => isSameVolume(place, other)))
}
