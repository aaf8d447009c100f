import { quoted, Refusal } from '../errors/refusal.ts'
import { deferClose, type Handle } from '../host/host.ts'
import { isWithin } from '../mount-table/location-chain.ts'
import { findDeviceRows, type MountRow } from '../mount-table/mountinfo.ts'
import type { TableSnapshot } from '../mount-table/table-snapshot.ts'
import { resolveRowLocation } from '../mount-table/tree-location.ts'
import { mountRecords } from '../store/mount-record.ts'
import type { Session } from '../store/session.ts'
import { leadsToPlace, listFilePlaces, listRecordPlaces, type ProtectedPlace } from '../volume/kind/protected-places.ts'
import { holdsOwnRecords } from '../volume/kind/source-path.ts'
import type { ContainerCloneRequest } from './clone-request.ts'

export interface PodContext extends Pick<ContainerCloneRequest, 'kubeletDir' | 'pod'> {
  /** Shared by all of a container's volumes, because kubelet has mounted them before it creates the container. */
  table: TableSnapshot
}

/**
 * Refuses a source that is, contains or lies in modekeep's own files: its records, its log and its configuration. Locations
 * are compared, because the path of a bind mount does not show its source.
 * @param isOfKubelet whether kubelet has mounted the source in the pod's directory
 * @throws {Refusal}
 */
export function refuseOwnFiles(
  { host, config }: Session,
  table: TableSnapshot,
  handle: Handle,
  isOfKubelet: boolean,
): void {
  const path = host.inodes.pathOf(handle)
  const leadsTo = (place: ProtectedPlace) => leadsToPlace(host, table, handle, place, isOfKubelet)
  if (holdsOwnRecords(path, config) || leadsTo(listRecordPlaces(config))) {
    throw new Refusal(`is of ${quoted(path)}, which holds modekeep's own records: name another directory`)
  }
  const file = listFilePlaces(config).find(({ place }) => leadsTo(place))
  if (file === undefined) return
  throw new Refusal(
    `is of ${quoted(path)}, which holds modekeep's ${file.what} ${quoted(file.file)}: name another directory`,
  )
}

/** Refuses kubelet's directory and pods' volumes. Locations are compared, because both may be mounted at other paths too. */
export function refuseOtherPods(session: Session, context: PodContext, handle: Handle): void {
  const { host } = session
  const { kubeletDir, table } = context
  const path = host.inodes.pathOf(handle)
  if (leadsToPlace(host, table, handle, { directory: kubeletDir, isTree: true })) {
    throw new Refusal(`lies at ${quoted(path)}, in kubelet's own directory or around it: use a volume of the pod`)
  }
  const volume = findShownVolume(session, context, handle, path)
  if (volume === undefined) return
  throw new Refusal(
    `lies at ${quoted(path)}, where the volume of a pod is mounted too (${quoted(volume)}): use a volume of the pod`,
  )
}

/** Kubelet binds directories of the node at these paths. Other volume directories have mounts that a driver made for pods. */
const NODE_DIRECTORIES = /\/(volumes\/kubernetes\.io~local-volume|volume-subpaths)\//

/**
 * Finds the mount of a pod's volume that shows the same location as the handle's mount. Ignores directories of the node that
 * kubelet binds, and sources of modekeep's own volumes, which a rule may name.
 */
function findShownVolume(
  session: Session,
  { kubeletDir, table }: PodContext,
  handle: Handle,
  path: string,
): string | undefined {
  const { inodes, mounts } = session.host
  const row = table.findRow(mounts.tableId(handle))
  if (row === undefined || row.mountPoint === '/') return undefined
  const kubelet = inodes.openTrusted(kubeletDir)
  using _ = deferClose(inodes, kubelet)
  const pods = `${inodes.pathOf(kubelet)}/pods/`
  const isVolume = ({ mountPoint }: MountRow) => mountPoint.startsWith(pods) && !NODE_DIRECTORIES.test(mountPoint)
  const shows = (volume: MountRow) => isWithin(resolveRowLocation(row), resolveRowLocation(volume))
  const shown = findDeviceRows(table.text(), row.device).filter((volume) => isVolume(volume) && shows(volume))
  const isSource = ({ mountPoint }: MountRow) => mountRecords.readUnlessDamaged(session, mountPoint)?.source === path
  return shown.find((volume) => !isSource(volume))?.mountPoint
}
