import { findVolumeMapGrant, HOST_PATH_KIND } from '../config/map-rule.ts'
import { createFault, type Fault } from '../errors/fault.ts'
import { formatError, quoteValue, Refusal } from '../errors/refusal.ts'
import { UnmappableVolume } from '../fsgroup/map-group.ts'
import { deferHandleClose, type Handle, type Host } from '../kernel/host.ts'
import {
  findDeviceMountRows,
  type MountRow,
  type MountTableSnapshot,
  parseMountinfo,
  readFileSystemType,
} from '../kernel/mount-table/mountinfo.ts'
import { isLocationWithin, resolveMountRowLocation } from '../kernel/mount-table/tree-location.ts'
import { mountRecords } from '../state/mount-record.ts'
import type { Session } from '../state/session.ts'
import {
  isPathOverlappingRecords,
  leadsToProtectedPlace,
  listProtectedFilePlaces,
  listProtectedRecordPlaces,
  type ProtectedPlace,
} from '../volume/kind/source-path.ts'
import { findOtherSourcePaths } from '../volume/second-paths.ts'
import {
  type CloneRequest,
  type ContainerCloneRequest,
  findCloneRemedy,
  findPropagationOption,
  LEAVE_VOLUME_OUT_REMEDY,
} from './clone-request.ts'

export type PodIdentity = Pick<ContainerCloneRequest, 'kubeletDir' | 'pod'>

export interface PodMountContext extends PodIdentity {
  /** Shared by all of a container's volumes, because kubelet has mounted them before it creates the container. */
  table: MountTableSnapshot
}

/**
 * Refuses a source that is, contains or lies in modekeep's own files: its records, its log and its configuration. Locations
 * are compared, because the path of a bind mount does not show its source.
 * @param isOfKubelet whether kubelet has mounted the source in the pod's directory
 * @throws {Refusal}
 */
export function refuseModekeepFiles(
  { host, config }: Session,
  table: MountTableSnapshot,
  handle: Handle,
  isOfKubelet: boolean,
): void {
  const path = host.inodes.pathOf(handle)
  const leadsTo = (place: ProtectedPlace) => leadsToProtectedPlace(host, table, handle, place, isOfKubelet)
  if (isPathOverlappingRecords(path, config) || leadsTo(listProtectedRecordPlaces(config))) {
    throw Refusal.of(
      'map-source',
      `is of ${quoteValue(path)}, which holds modekeep's own records`,
      'name another directory',
    )
  }
  const file = listProtectedFilePlaces(config).find(({ place }) => leadsTo(place))
  if (file === undefined) return
  throw Refusal.of(
    'map-source',
    `is of ${quoteValue(path)}, which holds modekeep's ${file.what} ${quoteValue(file.file)}`,
    'name another directory',
  )
}

/** Refuses kubelet's directory and pods' volumes. Locations are compared, because both may be mounted at other paths too. */
export function refuseVolumesOfOtherPods(session: Session, context: PodMountContext, handle: Handle): void {
  const { host } = session
  const { kubeletDir, table } = context
  const path = host.inodes.pathOf(handle)
  if (leadsToProtectedPlace(host, table, handle, { directory: kubeletDir, isTree: true })) {
    throw Refusal.of(
      'map-source',
      `lies at ${quoteValue(path)}, in kubelet's own directory or around it`,
      'use a volume of the pod',
    )
  }
  const volume = findShownPodVolume(session, context, handle, path)
  if (volume === undefined) return
  throw Refusal.of(
    'map-source',
    `lies at ${quoteValue(path)}, where the volume of a pod is mounted too (${quoteValue(volume)})`,
    'use a volume of the pod',
  )
}

/** Kubelet binds directories of the node at these paths. Other volume directories have mounts that a driver made for pods. */
const NODE_DIRECTORY_BIND_PATTERN = /\/(volumes\/kubernetes\.io~local-volume|volume-subpaths)\//

/**
 * Finds the mount of a pod's volume that shows the same location as the handle's mount. Ignores directories of the node that
 * kubelet binds, and sources of modekeep's own volumes, which a rule may name.
 */
function findShownPodVolume(
  session: Session,
  { kubeletDir, table }: PodMountContext,
  handle: Handle,
  path: string,
): string | undefined {
  const { inodes, mounts } = session.host
  const row = table.findRow(mounts.tableId(handle))
  if (row === undefined || row.mountPoint === '/') return undefined
  const kubelet = inodes.openTrusted(kubeletDir)
  using _ = deferHandleClose(inodes, kubelet)
  const pods = `${inodes.pathOf(kubelet)}/pods/`
  const isVolume = ({ mountPoint }: MountRow) =>
    mountPoint.startsWith(pods) && !NODE_DIRECTORY_BIND_PATTERN.test(mountPoint)
  const shows = (volume: MountRow) => isLocationWithin(resolveMountRowLocation(row), resolveMountRowLocation(volume))
  const shown = findDeviceMountRows(table.text(), row.device).filter((volume) => isVolume(volume) && shows(volume))
  const isSource = ({ mountPoint }: MountRow) => mountRecords.readUnlessDamaged(session, mountPoint)?.source === path
  return shown.find((volume) => !isSource(volume))?.mountPoint
}

/** Returns whether a source is in the pod's directory. @throws {Refusal} for another pod's directory */
export const isPodDirectoryPath = (pod: PodIdentity, source: string): boolean => splitPodPath(pod, source) !== undefined

/** Splits a path below kubelet's directory; undefined for other paths. @throws {Refusal} for another pod's directory */
export function splitPodPath({ kubeletDir, pod }: PodIdentity, source: string): string[] | undefined {
  if (!`${source}/`.startsWith(`${kubeletDir}/`)) return undefined
  const parts = source.slice(kubeletDir.length + 1).split('/')
  const isWhole = parts.length > 2 && parts.every((part) => !['', '.', '..'].includes(part))
  if (isWhole && parts[0] === 'pods' && parts[1] === pod.uid) return parts
  throw Refusal.of(
    'map-source',
    `lies at ${quoteValue(source)}, which is not in this pod's directory`,
    `use a volume of the pod`,
  )
}

export function refuseMountPropagation({ options }: CloneRequest): void {
  const option = findPropagationOption(options)
  if (option === undefined) return
  throw Refusal.of(
    'map-propagation',
    `has mount propagation (${option}), which a mapped clone does not take part in`,
    `leave "mountPropagation" out, or the volume out of the annotation`,
  )
}

export function refuseFileSystemType(host: Host, { fsTypes }: CloneRequest, handle: Handle): void {
  if (fsTypes === undefined) return
  const type = readFileSystemType(host, handle) ?? 'an unknown file system'
  if (fsTypes.includes(type)) return
  throw Refusal.of(
    'map-not-allowed',
    `is on ${type}, and this node's configuration ("map") allows ${fsTypes.join(', ')} here`,
    `have a rule name it, or ${LEAVE_VOLUME_OUT_REMEDY}`,
  )
}

/** A clone contains one mount. Mounts inside would be missing, and the files that they cover would be visible. */
export function refuseMountsBelow(
  { inodes, mounts }: Host,
  table: MountTableSnapshot,
  handle: Handle,
  path: string,
): void {
  const { mountRoot, mountId } = inodes.statMountPoint(handle)
  // The usual case, without reading the mount table: 1,000 mounts take 2 ms.
  if (mountRoot && mounts.hasMountsOn(mountId) === false) return
  const text = table.text()
  const shown = path.replace(/[ \t\n\\]/g, (byte) => `\\${byte.charCodeAt(0).toString(8).padStart(3, '0')}`)
  // Parses the table only if the text contains the path, because thousands of mounts take milliseconds.
  if (!text.includes(` ${shown === '/' ? '' : shown}/`)) return
  const below = parseMountinfo(text).find(({ mountPoint }) => mountPoint.startsWith(path === '/' ? '/' : `${path}/`))
  if (below === undefined) return
  throw Refusal.of(
    'map-propagation',
    `has another mount inside (${quoteValue(below.mountPoint)}), and only a volume without one can be mapped`,
    `mount a directory that has none`,
  )
}

/**
 * Checks the rules of `map` for each other path by which a rule names a hostPath or a part of it. Locations are compared
 * through every mount of the node.
 * @returns the request, and one more for each of these paths with its grants; all of them must allow the clone
 * @throws {Refusal} for a path that no rule permits
 */
export function createCloneRequestPerPath(
  session: Session,
  context: PodMountContext,
  request: CloneRequest,
  handle: Handle,
): CloneRequest[] {
  const { source, group } = request
  if (group === undefined || isPodDirectoryPath(context, source)) return [request]
  const { map } = session.config
  const { namespace } = context.pod
  const hostPath = { handle, path: source, kubeletDirectory: context.kubeletDir, rules: map }
  const otherPaths = findOtherSourcePaths(session, context.table, hostPath)
  const requests = otherPaths.map(({ path }): CloneRequest => {
    const grant = findVolumeMapGrant(map, { namespace, kind: HOST_PATH_KIND, volume: path, group })
    if ('refusal' in grant) {
      const { reason, remedy, cause } = grant.refusal
      throw Refusal.of(
        'source-second-path',
        `shows the content of ${quoteValue(path)} by another mount, which a rule of "map" names, and the pod must be allowed both: ${reason}`,
        remedy,
        cause,
      )
    }
    return { ...request, fsTypes: grant.fsTypes, grants: grant.grants }
  })
  return [request, ...requests]
}

export function createCloneFailureFaults(request: CloneRequest, error: unknown): readonly Fault[] {
  const { group } = request
  const what = group === undefined ? 'cannot be mapped for the pod' : `cannot show its group as ${group}`
  const remedy = findCloneRemedy(request)
  if (error instanceof UnmappableVolume) return [createFault('idmap-impossible', `${what}: ${error.why}`, remedy)]
  if (error instanceof Refusal) return error.faults
  return [
    createFault('map-failed', `could not be mapped (${formatError(error)})`, `look at the node's log, or ${remedy}`),
  ]
}
