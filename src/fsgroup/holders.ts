import { Refusal } from '../errors/refusal.ts'
import { parsePodVolume } from '../kernel/mount-table/kubelet-volume.ts'
import {
  type MountPointState,
  openMountPoint,
  resolveMountPointState,
  statMountPointUnsynced,
} from '../kernel/mount-table/mount-point.ts'
import { type MountRow, parseMountinfo } from '../kernel/mount-table/mountinfo.ts'
import { createLocationFinder, type TreeLocation } from '../kernel/mount-table/tree-location.ts'
import { type ContainerGroupHolder, listContainerGroupHolders } from '../state/container-record.ts'
import { hasVolumeWalker } from '../state/lock-holders.ts'
import { acquireNodeLock, acquireRecordLock } from '../state/locks.ts'
import {
  findRecordedMounts,
  hasMountRecord,
  isRecordedMount,
  listUnrecordedMounts,
  type MountRecord,
} from '../state/mount-record.ts'
import {
  listVolumeReservations,
  removeStaleReservations,
  reservationRecords,
  type VolumeReservation,
  waitForReservationRelease,
} from '../state/process-records.ts'
import { locateVolumeRecords } from '../state/record-directories.ts'
import { type Session, warnOnFailure } from '../state/session.ts'
import {
  areVolumesOverlapping,
  createNfsExportFinder,
  mayLocationsOverlap,
  refuseManyAbandonedWalkers,
  type VolumeExtent,
} from './conflicts.ts'

export type VolumeUser = MountRecord | ContainerGroupHolder | VolumeReservation

export interface OtherVolumeUsers {
  /** Location of the volume itself, if the mount table shows it. */
  location: TreeLocation | undefined
  mounts: MountRecord[]
  /** Containers that see it through a mapped clone. */
  containers: ContainerGroupHolder[]
  /** Mounts of modekeep whose records are lost. */
  lost: MountWithUnknownGroup[]
  /**
   * Calls at work on a part of it or on a tree that contains it. Calls on the volume itself are excluded by its lock.
   */
  reservations: VolumeReservation[]
}

/** A mount whose pod relies on an unknown group. */
interface MountWithUnknownGroup {
  directory: string
  /** Group of its root on disk: applying that group takes nothing from the pod. Undefined: it is not visible. */
  group: number | undefined
}

/**
 * Finds the existing mounts and the calls at work that use a volume.
 * @param except mount directory that is excluded
 * @throws {Refusal} if the record of an existing mount, or the reservation of a call at work, cannot be read: its group
 * is unknown then
 */
export function findOtherVolumeUsers(
  session: Session,
  { volume, source, location }: VolumeExtent,
  except: string | undefined,
): OtherVolumeUsers {
  // Reservations are read before the mount table: a call releases its reservation once its mount is visible.
  const reserved = listVolumeReservations(session).filter((reservation) => reservation.volume !== volume)
  const rows = parseMountinfo(session.host.mounts.table())
  const [findLocation, findExport] = [createLocationFinder(rows), createNfsExportFinder(rows)]
  const located = location ?? (source === undefined ? undefined : findLocation(source))
  const sought = { volume, source, location: located, exported: source === undefined ? undefined : findExport(source) }
  // Only records of existing mounts are read, because there may be any number of others.
  const mountPoints = new Set(rows.map(({ mountPoint }) => mountPoint))
  if (except !== undefined) mountPoints.delete(except)
  const recorded = findRecordedMounts(session, mountPoints)
  return {
    location: sought.location,
    mounts: recorded.flatMap(({ directory, record, problem }) => {
      // The mount's own row shows the current location of its root; the path of its source may not.
      const mountLocation = findLocation(directory)
      // The mount point is checked last, because that takes far longer than the comparison.
      if (
        problem &&
        mayLocationsOverlap(mountLocation, sought.location) &&
        readMountedState(session, directory) !== undefined
      )
        throw problem
      if (!record) return []
      const exported = (record.source === undefined ? undefined : findExport(record.source)) ?? findExport(directory)
      return areVolumesOverlapping({ ...record, location: mountLocation, exported }, sought) &&
        isRecordedMountLive(session, record)
        ? [record]
        : []
    }),
    containers: listContainerGroupHolders(session).filter(({ volume, source }) =>
      areVolumesOverlapping({ volume, source, location: findLocation(source), exported: findExport(source) }, sought),
    ),
    lost: findMountsWithUnknownGroup(session, rows, {
      except,
      recorded: new Set(recorded.map(({ directory }) => directory)),
      showsVolume: (directory) =>
        areVolumesOverlapping({ location: findLocation(directory), exported: findExport(directory) }, sought),
    }),
    reservations: reserved.flatMap(({ record, problem }) => {
      if (problem) throw problem
      const exported = record?.source === undefined ? undefined : findExport(record.source)
      return record && areVolumesOverlapping({ ...record, exported }, sought) ? [record] : []
    }),
  }
}

interface UnknownGroupSearch {
  /** Mount directory that is excluded. */
  except: string | undefined
  /** Mounts that have a record. */
  recorded: ReadonlySet<string>
  /** Returns whether a mount shows the volume, a part of it, or a tree that contains it. */
  showsVolume(directory: string): boolean
}

function findMountsWithUnknownGroup(
  session: Session,
  rows: readonly MountRow[],
  { except, recorded, showsVolume }: UnknownGroupSearch,
): MountWithUnknownGroup[] {
  const excluded = except === undefined ? undefined : parsePodVolume(except)
  const matters = (directory: string) => parsePodVolume(directory) !== excluded && showsVolume(directory)
  const mapped = new Set(rows.flatMap(({ mountPoint, options }) => (options.includes('idmapped') ? [mountPoint] : [])))
  return listUnrecordedMounts(session, rows, matters, recorded).flatMap((directory) => {
    const mountedId = readDirectoryMountId(session, directory)
    // A mount that was unmounted since the table was read has no record either.
    const isOver = mountedId === undefined || hasMountRecord(session, directory)
    if (isOver || readDirectoryMountId(session, directory) !== mountedId) return []
    return [{ directory, group: mapped.has(directory) ? undefined : readRootGroupId(session, directory) }]
  })
}

function readDirectoryMountId(session: Session, directory: string): string | undefined {
  const mounted = readMountedState(session, directory)
  return typeof mounted === 'object' ? String(mounted.mountId) : mounted
}

function readRootGroupId({ host }: Session, directory: string): number | undefined {
  using point = openMountPoint(host, directory)
  const stat = point && statMountPointUnsynced(host, point)
  return typeof stat === 'object' ? stat.gid : undefined
}

/** Lists the holders of a volume: existing mounts, containers, and mounts that are being made. */
export function listVolumeUsers({ mounts, containers, reservations }: OtherVolumeUsers): VolumeUser[] {
  return [...mounts, ...containers, ...reservations.filter(({ directory }) => directory !== undefined)]
}

/** Returns whether the mount of a record exists, in this boot. */
export function isRecordedMountLive(session: Session, record: MountRecord): boolean {
  const boot = session.host.bootId()
  const mounted = readMountedState(session, record.directory)
  if (mounted === 'broken') return record.mounted !== undefined && record.boot === boot
  return mounted === 'unknown' || isRecordedMount(record, { mounted, boot })
}

/** Returns 'unknown' if the mount point cannot be checked, which counts as mounted. */
function readMountedState({ host }: Session, directory: string): MountPointState['mounted'] | 'unknown' {
  using point = openMountPoint(host, directory)
  try {
    return point && resolveMountPointState(host, point, statMountPointUnsynced(host, point)).mounted
  } catch (error) {
    // The path is no directory or file that could be a mount point.
    return error instanceof Refusal ? undefined : 'unknown'
  }
}

/**
 * Takes a volume's lock and writes a reservation. Waits while another call works on a part of the volume or on a tree
 * that contains it. Otherwise the journal of one walk would record the results of the other as the original state. A
 * call that has a reservation waits for no other call, so no two calls wait for each other.
 * @param reservation a missing location is resolved from the source
 * @param except mount directory that is excluded from the search for other users
 * @param refuse throws if another user conflicts; called again after a wait
 * @returns locks whose disposal releases the volume
 */
export async function reserveVolume(
  session: Session,
  reservation: VolumeReservation,
  except: string | undefined,
  refuse: (others: OtherVolumeUsers) => void,
): Promise<DisposableStack> {
  using held = new DisposableStack()
  held.use(await acquireRecordLock(session, locateVolumeRecords(session, reservation.volume)))
  // A reservation of a crashed process would count as this call's while it waits.
  reservationRecords.remove(session, reservation.volume)
  for (;;) {
    const busy = await reserveUnlessBusy()
    if (busy === undefined) break
    await waitForReservationRelease(session, busy.volume)
  }
  // A reservation that stays is valid only with the volume's lock, or with a process that walks the volume for a call
  // that has ended.
  held.defer(() =>
    warnOnFailure(session, 'could not remove a reservation', () => {
      if (!hasVolumeWalker(session, reservation.volume)) reservationRecords.remove(session, reservation.volume)
    }),
  )
  return held.move()

  async function reserveUnlessBusy(): Promise<VolumeReservation | undefined> {
    using _ = await acquireNodeLock(session, 'reservations')
    warnOnFailure(session, 'could not remove a reservation', () => removeStaleReservations(session))
    const others = findOtherVolumeUsers(session, reservation, except)
    refuse(others)
    // An unmount does not fail because of this limit: its restore stays pending. A restore by hand has no pod.
    refuseManyAbandonedWalkers(session, reservation.pod)
    const [busy] = others.reservations
    if (busy === undefined) reservationRecords.write(session, { ...reservation, location: others.location })
    return busy
  }
}

/** Returns the group that a mount applied to its volume, or that its map expects on disk; undefined if none. */
export function readGroupOnDisk(holder: VolumeUser): number | undefined {
  if (!('given' in holder)) return holder.group
  const { given } = holder
  return given.by === 'walk' ? given.group : given.by === 'idmap' ? given.from : undefined
}

/** Describes a holder for a pod's events, which must not disclose other namespaces. The log has all details. */
export function describeVolumeUser(reader: string | undefined, { pod, source, directory }: VolumeUser): string {
  const [readerNamespace, holderNamespace] = [reader, pod].map((name) => name?.split('/', 1)[0])
  if (readerNamespace !== undefined && readerNamespace !== holderNamespace)
    return 'a pod of another namespace uses it or a part of it'
  return `pod ${pod ?? '(unnamed)'} uses ${source} (${directory})`
}
