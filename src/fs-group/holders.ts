import { retryUntilDefined } from '../host/back-off.ts'
import { parsePodVolume } from '../mount-table/kubelet-volume.ts'
import { type MountPointState, openMountPoint, resolveMountPointState, statPoint } from '../mount-table/mount-point.ts'
import { type MountRow, parseMountinfo } from '../mount-table/mountinfo.ts'
import { createLocationFinder, type TreeLocation } from '../mount-table/tree-location.ts'
import { Refusal } from '../refusal/refusal.ts'
import { type ContainerHolder, containerHolders } from '../store/container-record.ts'
import { holdPlace } from '../store/leftovers.ts'
import { hasWalker, tryLockNode } from '../store/locks.ts'
import { findMounts, hasMountRecord, isOurs, type MountRecord } from '../store/mount-record.ts'
import { volumePlace } from '../store/places.ts'
import {
  listReservations,
  type Reservation,
  removeDeadReservations,
  reservations,
  untilReleased,
} from '../store/reservation-record.ts'
import { orWarn, type Session } from '../store/session.ts'
import { unrecordedMounts } from '../store/unrecorded.ts'
import { refuseManyAbandonedWalkers } from './abandoned-walkers.ts'
import { exportsFrom, mayOverlap, overlap, type Volume } from './overlap.ts'

export type Holder = MountRecord | ContainerHolder | Reservation

/** Who has a volume, a part of it, or what it is a part of. */
export interface Others {
  /** Where the volume itself lies, as far as the mount table tells. */
  location: TreeLocation | undefined
  mounts: MountRecord[]
  /** Containers that see it by a mapped clone. */
  containers: ContainerHolder[]
  /** Volumes of modekeep's whose records are lost. */
  lost: LostMount[]
  /** Calls at work on parts of it, or on what it is a part of: not on the volume itself, which has a lock for that. */
  reservations: Reservation[]
}

/** A mount of which nobody can tell which group its pod relies on. */
export interface LostMount {
  directory: string
  /** Its root's on disk, with which at least nothing is taken from it; undefined: it is not seen. */
  group: number | undefined
}

/**
 * Looks for the mounts that are there and the calls at work.
 * @param except the mount directory that is left out
 * @throws {Refusal} where the record of a mount there or the reservation of a call at work cannot be read, so that
 * nobody can tell which group it relies on
 */
export function othersWith(session: Session, { volume, source, location }: Volume, except: string | undefined): Others {
  // In this order: a call gives its reservation up once its mount can be seen.
  const reserved = listReservations(session).filter((reservation) => reservation.volume !== volume)
  const rows = parseMountinfo(session.host.mounts.table())
  const [locationOf, exportOf] = [createLocationFinder(rows), exportsFrom(rows)]
  const located = location ?? (source === undefined ? undefined : locationOf(source))
  const asked = { volume, source, location: located, exported: source === undefined ? undefined : exportOf(source) }
  // What is on record and not mounted is not asked for: there may be any number of it.
  const mountPoints = new Set(rows.map(({ mountPoint }) => mountPoint))
  if (except !== undefined) mountPoints.delete(except)
  return {
    location: asked.location,
    mounts: findMounts(session, mountPoints).flatMap(({ directory, record, problem }) => {
      // A mount's own row, not the source's path, tells where its root lies now.
      const its = locationOf(directory)
      // What is there is asked last: it takes far longer than to compare.
      if (problem && mayOverlap(its, asked.location) && mountedAt(session, directory) !== undefined) throw problem
      if (!record) return []
      const exported = (record.source === undefined ? undefined : exportOf(record.source)) ?? exportOf(directory)
      return overlap({ ...record, location: its, exported }, asked) && isLiveMount(session, record) ? [record] : []
    }),
    containers: containerHolders(session).filter(({ volume, source }) =>
      overlap({ volume, source, location: locationOf(source), exported: exportOf(source) }, asked),
    ),
    lost: lostMounts(session, rows, except, (directory) =>
      overlap({ location: locationOf(directory), exported: exportOf(directory) }, asked),
    ),
    reservations: reserved.flatMap(({ record, problem }) => {
      if (problem) throw problem
      const exported = record?.source === undefined ? undefined : exportOf(record.source)
      return record && overlap({ ...record, exported }, asked) ? [record] : []
    }),
  }
}

/** @param isAsked whether a mount shows the volume, a part of it, or what it is a part of */
function lostMounts(
  session: Session,
  rows: readonly MountRow[],
  except: string | undefined,
  isAsked: (directory: string) => boolean,
): LostMount[] {
  const own = except === undefined ? undefined : parsePodVolume(except)
  const matters = (directory: string) => parsePodVolume(directory) !== own && isAsked(directory)
  const mapped = new Set(rows.flatMap(({ mountPoint, options }) => (options.includes('idmapped') ? [mountPoint] : [])))
  return unrecordedMounts(session, rows, matters).flatMap((directory) => {
    const there = idAt(session, directory)
    // What an unmount has ended since the table was read is on no record either.
    const isOver = there === undefined || hasMountRecord(session, directory)
    if (isOver || idAt(session, directory) !== there) return []
    return [{ directory, group: mapped.has(directory) ? undefined : rootGroup(session, directory) }]
  })
}

function idAt(session: Session, directory: string): string | undefined {
  const there = mountedAt(session, directory)
  return typeof there === 'object' ? String(there.mountId) : there
}

function rootGroup({ host }: Session, directory: string): number | undefined {
  using point = openMountPoint(host, directory)
  const stat = point && statPoint(host, point)
  return typeof stat === 'object' ? stat.gid : undefined
}

/** A mount that is being made holds a volume like one that is there, and so does a container's. */
export function holders({ mounts, containers, reservations }: Others): Holder[] {
  return [...mounts, ...containers, ...reservations.filter(({ directory }) => directory !== undefined)]
}

/** Whether the mount of a record is there, in this boot. */
export function isLiveMount(session: Session, record: MountRecord): boolean {
  const boot = session.host.bootId()
  const mounted = mountedAt(session, record.directory)
  if (mounted === 'broken') return record.mounted !== undefined && record.boot === boot
  return mounted === 'unknown' || isOurs(record, { mounted, boot })
}

/** 'unknown' where it cannot be looked at, which counts as there. */
function mountedAt({ host }: Session, directory: string): MountPointState['mounted'] | 'unknown' {
  using point = openMountPoint(host, directory)
  try {
    return point && resolveMountPointState(host, point, statPoint(host, point)).mounted
  } catch (error) {
    // There is what nobody could mount on.
    return error instanceof Refusal ? undefined : 'unknown'
  }
}

/**
 * Takes a volume's lock and tells the node what is done to it, once nobody else is at work on a part of it or on what
 * it is a part of: one of two journals would take the other walk's results for the original. Whoever has a reservation
 * waits for nobody, so no two calls wait for each other.
 * @param wanted its location is looked up by the source where it is not given
 * @param except the mount directory that is left out when others are looked for
 * @param refuse throws where somebody else has it; asked again after a wait
 * @returns dispose of it to give the volume back
 */
export async function reserveVolume(
  session: Session,
  wanted: Reservation,
  except: string | undefined,
  refuse: (others: Others) => void,
): Promise<DisposableStack> {
  using held = new DisposableStack()
  held.use(await holdPlace(session, volumePlace(session, wanted.volume)))
  // Left by a process that crashed, it would pass for this one's while it waits.
  reservations.remove(session, wanted.volume)
  for (;;) {
    const busy = await reserveUnlessBusy(session, wanted, except, refuse)
    if (busy === undefined) break
    await untilReleased(session, busy.volume)
  }
  // One that is left is believed by nobody without the volume's lock, or a process that walks it for a call that is over.
  held.defer(() =>
    orWarn(session, 'could not remove a reservation', () => {
      if (!hasWalker(session, wanted.volume)) reservations.remove(session, wanted.volume)
    }),
  )
  return held.move()
}

/** @returns whose work stands in the way, if any */
async function reserveUnlessBusy(
  session: Session,
  wanted: Reservation,
  except: string | undefined,
  refuse: (others: Others) => void,
): Promise<Reservation | undefined> {
  using _ = await retryUntilDefined(() => tryLockNode(session, 'reservations'))
  orWarn(session, 'could not remove a reservation', () => removeDeadReservations(session))
  const others = othersWith(session, wanted, except)
  refuse(others)
  // An unmount is never refused for it: its restore stays pending. A restore by hand has no pod.
  refuseManyAbandonedWalkers(session, wanted.pod)
  const [busy] = others.reservations
  if (busy === undefined) reservations.write(session, { ...wanted, location: others.location })
  return busy
}
