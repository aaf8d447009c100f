import { parseRemoteSource, type RemoteSource } from '../config/source.ts'
import { Refusal } from '../errors/refusal.ts'
import { isPossibleBtrfsUuid } from '../kernel/btrfs.ts'
import { type MountRow, parseMountinfo } from '../kernel/mount-table/mountinfo.ts'
import {
  areLocationsNested,
  arePathsNested,
  createLocationFinder,
  createMountFinder,
  type TreeLocation,
  toPathPrefix,
} from '../kernel/mount-table/tree-location.ts'
import { findVolumeWalkerPid, hasAbandonedWalker } from '../state/lock-holders.ts'
import { acquireNodeLock } from '../state/locks.ts'
import { listVolumeReservations, type VolumeReservation } from '../state/process-records.ts'
import type { Session } from '../state/session.ts'
import { listRootSetGidVolumes, rootSetGidRecords } from '../state/volume-record.ts'
import { createTooManyUnkillableWorkersFault } from '../worker/given-up.ts'

export interface VolumeExtent {
  volume?: string | undefined
  /** Undefined: it has none, like a tmpfs. */
  source?: string | undefined
  location?: TreeLocation | undefined
  /** Its location on an NFS server. */
  exported?: RemoteSource | undefined
}

/** Returns whether two volumes are the same, or one contains the other. */
export function areVolumesOverlapping(one: VolumeExtent, other: VolumeExtent): boolean {
  if (one.volume !== undefined && one.volume === other.volume) return true
  if (areExportsNested(one.exported, other.exported)) return true
  if (isMissingFromMountTable(one.location) || isMissingFromMountTable(other.location))
    return mayBeSameFileSystem(extractFileSystemId(one.volume), extractFileSystemId(other.volume))
  if (one.location && other.location) return areLocationsNested(one.location, other.location)
  return one.source !== undefined && other.source !== undefined && arePathsNested(one.source, other.source)
}

/** Returns a function that finds the NFS export of a source, which is an export's text or a path of the node. */
export function createNfsExportFinder(table: readonly MountRow[]): (source: string) => RemoteSource | undefined {
  const mountsTo = createMountFinder(table)
  return (source) => {
    if (!source.startsWith('/')) return parseRemoteSource(source, 'export')
    const mount = mountsTo(source).at(-1)
    if (mount === undefined || !/^nfs4?$/.test(mount.fsType)) return undefined
    // The kernel shows the path of the mount's own root as the source, also for a bind mount.
    const exported = parseRemoteSource(mount.source, 'export')
    const below = source.slice(toPathPrefix(mount.mountPoint).length)
    return exported && { ...exported, path: `${toPathPrefix(exported.path)}${below}` }
  }
}

/** Returns whether one of two directories on a server contains the other. The kernel shows only one of its names. */
function areExportsNested(one: RemoteSource | undefined, other: RemoteSource | undefined): boolean {
  if (one?.server.toLowerCase() !== other?.server.toLowerCase() || !one || !other) return false
  return arePathsNested(toPathPrefix(one.path), toPathPrefix(other.path))
}

/**
 * Returns whether a mount may show a volume, a part of it, or a tree that contains it, if only its location is known.
 */
export function mayLocationsOverlap(one: TreeLocation | undefined, other: TreeLocation | undefined): boolean {
  if (one === undefined || other === undefined || isMissingFromMountTable(one) || isMissingFromMountTable(other))
    return true
  return areLocationsNested(one, other)
}

/**
 * On btrfs, the mount table shows device numbers that no other interface returns. So a tree that is not in the table
 * yet is compared by its identity.
 */
const isMissingFromMountTable = (location: TreeLocation | undefined) => location?.device === ''
const extractFileSystemId = (volume: string | undefined) => volume?.replace(/-[0-9a-f]+-[0-9a-f]+$/, '')

const isFileSystemUuid = (id: string) => /^[0-9a-f]{32}$/.test(id)

/** Compares ids of file systems. A part of a btrfs may have a name from a kernel that reported no UUID. */
function mayBeSameFileSystem(one: string | undefined, other: string | undefined): boolean {
  if (one === other) return true
  if (one === undefined || other === undefined || one.includes('.') === other.includes('.')) return false
  const [id, uuid] = one.includes('.') ? [one, other] : [other, one]
  return isFileSystemUuid(uuid) && isPossibleBtrfsUuid(id, Buffer.from(uuid, 'hex'))
}

/** A volume that will be mapped without its lock. The mapping is recorded already. */
interface PlannedVolumeMapping {
  volume: string
  /** Its real path on the node. */
  source: string
  group: number
}

/**
 * Finds calls that work on volumes, on parts of them or on trees that contain them, for another group than they have. A
 * call that starts later finds the recorded mapping and refuses, because it checks the records under the same lock.
 * @returns the reservation of such a call for each volume, in the same order
 * @throws {Refusal} if the reservation of a call at work cannot be read
 */
export async function findConflictingReservations(
  session: Session,
  volumes: readonly PlannedVolumeMapping[],
): Promise<(VolumeReservation | undefined)[]> {
  using _ = await acquireNodeLock(session, 'reservations')
  const reserved = listVolumeReservations(session)
  // This is the usual case, in which the mount table is not read.
  if (reserved.length === 0) return volumes.map(() => undefined)
  const rows = parseMountinfo(session.host.mounts.table())
  const [findLocation, findExport] = [createLocationFinder(rows), createNfsExportFinder(rows)]
  const calls = reserved.flatMap(({ record, problem }) => {
    if (problem) throw problem
    return record ? [{ ...record, exported: record.source === undefined ? undefined : findExport(record.source) }] : []
  })
  return volumes.map(({ volume, source, group }) => {
    const sought = { volume, source, location: findLocation(source), exported: findExport(source) }
    return calls.find((call) => call.group !== group && areVolumesOverlapping(call, sought))
  })
}

/** Each is a process of some 90 MB that the kernel does not let end. */
const MAX_ABANDONED_WALKERS = 4

/**
 * Limits the walkers that outlive their calls, for each namespace. Call it under the node's lock for reservations.
 * @param pod as its reservation names it: the namespace, a slash and the name
 * @throws {Refusal} if the walks of the namespace's pods have left too many of them
 */
export function refuseManyAbandonedWalkers(session: Session, pod: string | undefined): void {
  const namespace = parsePodNamespace(pod)
  const abandoned = findAbandonedWalkerVolumes(session, namespace, listVolumeReservations(session))
  if (abandoned.length < MAX_ABANDONED_WALKERS) return
  const processes = abandoned.map((volume) => findVolumeWalkerPid(session, volume) ?? '(unknown)')
  throw Refusal.of(
    'walk-given-up',
    `the walks of ${abandoned.length} volumes of namespace ${namespace} were given up, and their processes still wait in the kernel (${processes.join(', ')})`,
    `end the processes that keep directories of these volumes locked, or repair their disks or servers`,
  )
}

/**
 * Limits the processes that outlive their calls and change the root of a volume whose set-gid bit is recorded.
 * @param pod as the record names it
 */
export function refuseManyAbandonedRootWorkers(session: Session, pod: string | undefined): void {
  const namespace = parsePodNamespace(pod)
  const records = listRootSetGidVolumes(session).map((volume) => ({
    volume,
    ...rootSetGidRecords.find(session, volume),
  }))
  const abandoned = findAbandonedWalkerVolumes(session, namespace, records)
  if (abandoned.length < MAX_ABANDONED_WALKERS) return
  const processes = abandoned.flatMap((volume) => findVolumeWalkerPid(session, volume) ?? [])
  throw new Refusal(createTooManyUnkillableWorkersFault(`namespace ${namespace}`, processes))
}

/** Finds the volumes of a namespace's records whose walker outlived its call. */
function findAbandonedWalkerVolumes(
  session: Session,
  namespace: string | undefined,
  records: readonly { volume: string; record?: { pod?: string | undefined } | undefined }[],
): string[] {
  if (namespace === undefined) return []
  const own = records.filter(({ record }) => parsePodNamespace(record?.pod) === namespace)
  return own.map(({ volume }) => volume).filter((volume) => hasAbandonedWalker(session, volume))
}

function parsePodNamespace(pod: string | undefined): string | undefined {
  return pod?.includes('/') ? pod.split('/', 1)[0] : undefined
}
