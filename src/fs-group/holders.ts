import { lookAt, openMountPoint, type Seen, statPoint } from '../mount-table/mount-point.ts'
import { areNested, isNested, locationsFrom, type TreeLocation } from '../mount-table/tree-location.ts'
import { Refusal } from '../refusal/refusal.ts'
import { isOurs, listMountRecords, listUnreadableMounts, type MountRecord } from '../store/mount-record.ts'
import { listReservations, type Reservation } from '../store/reservation-record.ts'
import type { Session } from '../store/session.ts'

interface Volume {
  volume?: string | undefined
  /** Undefined: it has none, as a tmpfs. */
  source?: string | undefined
  location?: TreeLocation | undefined
}

/** Who has a volume, a part of it, or what it is a part of. */
export interface Others {
  /** Where the volume itself lies, as far as the mount table tells. */
  location: TreeLocation | undefined
  mounts: MountRecord[]
  /** Calls at work on parts of it, or on what it is a part of: not on the volume itself, which has a lock for that. */
  reservations: Reservation[]
}

/**
 * Looks for the mounts that are there and the calls at work.
 * @param except the mount directory that is left out
 * @throws {Refusal} where the record of a mount there cannot be read, so that nobody can tell which group it relies on
 */
export function othersWith(session: Session, { volume, source, location }: Volume, except: string | undefined): Others {
  const { host, config } = session
  // In this order: a call gives its reservation up once its mount can be seen.
  const reservations = listReservations(host, config.stateDir).filter((reservation) => reservation.volume !== volume)
  const locationOf = locationsFrom(host.mounts.table())
  const asked = { volume, source, location: location ?? (source === undefined ? undefined : locationOf(source)) }
  for (const { directory, problem } of listUnreadableMounts(host, config.stateDir)) {
    if (directory === except) continue
    if (mayOverlap(locationOf(directory), asked.location) && hasMount(session, directory)) throw problem
  }
  return {
    location: asked.location,
    mounts: listMountRecords(host, config.stateDir)
      .filter(({ directory }) => directory !== except)
      // A mount's own row, not the source's path, tells where its root lies now.
      .filter((mount) => overlap({ ...mount, location: locationOf(mount.directory) }, asked))
      // Asked last: it takes far longer than to compare.
      .filter((mount) => isLive(session, mount)),
    reservations: reservations.filter((reservation) => overlap(reservation, asked)),
  }
}

/** A mount that is being made holds a volume like one that is there. */
export function holders({ mounts, reservations }: Others): (MountRecord | Reservation)[] {
  return [...mounts, ...reservations.filter(({ directory }) => directory !== undefined)]
}

/** Whether one is, has or is in the other. */
function overlap(one: Volume, other: Volume): boolean {
  if (one.volume !== undefined && one.volume === other.volume) return true
  if (isUnlisted(one.location) || isUnlisted(other.location))
    return fileSystemOf(one.volume) === fileSystemOf(other.volume)
  if (one.location && other.location) return isNested(one.location, other.location)
  return one.source !== undefined && other.source !== undefined && areNested(one.source, other.source)
}

/** Whether a mount of which only its location is known may show the volume, a part of it, or what it is a part of. */
function mayOverlap(one: TreeLocation | undefined, other: TreeLocation | undefined): boolean {
  if (one === undefined || other === undefined || isUnlisted(one) || isUnlisted(other)) return true
  return isNested(one, other)
}

/** On btrfs the mount table names file systems as nothing else does: what is not in it yet is told by its identity. */
const isUnlisted = (location: TreeLocation | undefined) => location?.device === ''
const fileSystemOf = (volume: string | undefined) => volume?.replace(/-[0-9a-f]+-[0-9a-f]+$/, '')

function isLive(session: Session, record: MountRecord): boolean {
  const boot = session.host.bootId()
  return isSeen(session, record.directory, (mounted) =>
    mounted === 'broken' ? record.mounted !== undefined && record.boot === boot : isOurs(record, { mounted, boot }),
  )
}

function hasMount(session: Session, directory: string): boolean {
  return isSeen(session, directory, (mounted) => mounted !== undefined)
}

/** What cannot be looked at counts as there. */
function isSeen({ host }: Session, directory: string, isIt: (mounted: Seen['mounted']) => boolean): boolean {
  const point = openMountPoint(host, directory)
  if (point === undefined) return false
  try {
    return isIt(lookAt(host, point, statPoint(host, point)).mounted)
  } catch (error) {
    // There is what nobody could mount on.
    return !(error instanceof Refusal)
  } finally {
    host.inodes.close(point.parent)
  }
}
