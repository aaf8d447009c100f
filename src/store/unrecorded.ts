import { isOwnVolume } from '../mount-table/kubelet-volume.ts'
import type { MountRow } from '../mount-table/mountinfo.ts'
import { findMounts } from './mount-record.ts'
import type { Store } from './places.ts'

/**
 * What of the table is a volume of modekeep's by its place, and on no record: that was lost, and with it the group that
 * the pod relies on.
 * @returns mount points; one may have been unmounted, and its record removed, after the table was read
 */
export function unrecordedMounts(store: Store, table: readonly MountRow[]): string[] {
  const places = table.map(({ mountPoint }) => mountPoint)
  const ours = [...new Set(places)].filter((place) => isOwnVolume(store.host, place))
  const recorded = new Set(findMounts(store, ours).map(({ directory }) => directory))
  return ours.filter((place) => !recorded.has(place))
}
