import { isOwnVolume, parsePodVolume } from '../mount-table/kubelet-volume.ts'
import type { MountRow } from '../mount-table/mountinfo.ts'
import { hasMountRecord } from './mount-record.ts'
import type { Store } from './record-directories.ts'

/**
 * Lists the mounts that are modekeep's according to kubelet's directories and have no record. The record was lost, and
 * with it the group that the pod relies on. If kubelet's directory is bind-mounted, each mount has a second mount
 * point, which is not listed.
 * @param matters filters the mount points before a file is read to find out which driver mounted them
 * @returns mount points; a mount may have been unmounted, and its record removed, after the table was read
 */
export function listUnrecordedMounts(
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
