import { lookAt, openMountPoint, statPoint } from '../mount-table/mount-point.ts'
import { areNested, isNested, type Place, placesFrom } from '../mount-table/place.ts'
import { Refusal } from '../refusal/refusal.ts'
import { isReserved } from '../store/locks.ts'
import { isOurs, listMountRecords, type MountRecord } from '../store/mount-record.ts'
import { listReservations, type Reservation } from '../store/reservation-record.ts'
import type { Session } from '../store/session.ts'

interface Volume {
  volume?: string | undefined
  source: string
  place?: Place | undefined
}

/** Who has a volume, a part of it, or what it is a part of. */
export interface Others {
  /** Where the volume itself lies, as far as the mount table tells. */
  place: Place | undefined
  mounts: MountRecord[]
  /** Calls at work on parts of it, or on what it is a part of: not on the volume itself, which has a lock for that. */
  reservations: Reservation[]
}

/**
 * Looks for the mounts that are there and the calls at work.
 * @param except the mount directory that is left out
 */
export function othersWith(session: Session, { volume, source, place }: Volume, except: string | undefined): Others {
  const { host, config } = session
  // In this order: a call gives its reservation up once its mount can be seen.
  const reservations = listReservations(host, config.stateDir)
    .filter((reservation) => reservation.volume !== volume)
    .filter((reservation) => isReserved(host, config.stateDir, reservation.volume))
  const placeOf = placesFrom(host.mounts.table())
  const asked = { volume, source, place: place ?? placeOf(source) }
  return {
    place: asked.place,
    mounts: listMountRecords(host, config.stateDir)
      .filter(({ directory }) => directory !== except)
      // A mount's own row, not the source's path, tells where its root lies now.
      .filter((mount) => overlap({ ...mount, place: placeOf(mount.directory) }, asked))
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
  if (isUnlisted(one.place) || isUnlisted(other.place)) return fileSystemOf(one.volume) === fileSystemOf(other.volume)
  if (one.place && other.place) return isNested(one.place, other.place)
  // A tmpfs has none.
  return one.source !== '' && other.source !== '' && areNested(one.source, other.source)
}

/** On btrfs the mount table names file systems as nothing else does: what is not in it yet is told by its identity. */
const isUnlisted = (place: Place | undefined) => place?.device === ''
const fileSystemOf = (volume: string | undefined) => volume?.replace(/-[0-9a-f]+-[0-9a-f]+$/, '')

/** What cannot be looked at counts as there. */
function isLive({ host }: Session, record: MountRecord): boolean {
  const boot = host.bootId()
  const point = openMountPoint(host, record.directory)
  if (point === undefined) return false
  try {
    const { mounted } = lookAt(host, point, statPoint(host, point))
    if (mounted === 'broken') return record.mounted !== undefined && record.boot === boot
    return isOurs(record, { mounted, boot })
  } catch (error) {
    // There is what nobody could mount on.
    return !(error instanceof Refusal)
  } finally {
    host.inodes.close(point.parent)
  }
}
