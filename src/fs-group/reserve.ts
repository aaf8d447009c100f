import type { Lock } from '../host/host.ts'
import { releaseVolume } from '../store/leftovers.ts'
import { lockReservations, lockVolume } from '../store/locks.ts'
import { type Reservation, removeReservation, untilReleased, writeReservation } from '../store/reservation-record.ts'
import type { Session } from '../store/session.ts'
import { type Others, othersWith } from './holders.ts'

/** The location is looked up by the source where it is not given. */
export type Wanted = Reservation

/**
 * Takes a volume's lock and tells the node what is done to it, once nobody else is at work on a part of it or on what it
 * is a part of: one of two journals would take the other walk's results for the original. Whoever has a reservation waits for
 * nobody, so no two calls wait for each other.
 * @param except the mount directory that is left out when others are looked for
 * @param refuse throws where somebody else has it; asked again after a wait
 */
export async function reserveVolume(
  session: Session,
  wanted: Wanted,
  except: string | undefined,
  refuse: (others: Others) => void,
): Promise<Lock> {
  const { host, config } = session
  const lock = await lockVolume(host, config.stateDir, wanted.volume)
  try {
    // Left by a process that crashed, it would pass for this one's while it waits.
    removeReservation(host, config.stateDir, wanted.volume)
    for (;;) {
      const busy = await reserveUnlessBusy(session, wanted, except, refuse)
      if (busy === undefined) return { release: () => release(session, wanted.volume, lock) }
      await untilReleased(host, config.stateDir, busy.volume)
    }
  } catch (error) {
    releaseVolume(session, wanted.volume, lock)
    throw error
  }
}

/** @returns whose work stands in the way, if any */
async function reserveUnlessBusy(
  session: Session,
  wanted: Wanted,
  except: string | undefined,
  refuse: (others: Others) => void,
): Promise<Reservation | undefined> {
  const { host, config } = session
  const lock = await lockReservations(host, config.stateDir)
  try {
    const others = othersWith(session, wanted, except)
    refuse(others)
    const [busy] = others.reservations
    if (busy === undefined) writeReservation(host, config.stateDir, { ...wanted, location: others.location })
    return busy
  } finally {
    lock.release()
  }
}

function release(session: Session, volume: string, lock: Lock): void {
  const { host, config, warn } = session
  try {
    removeReservation(host, config.stateDir, volume)
  } catch (error) {
    // Without the lock nobody believes it.
    warn(`a reservation was left behind: ${(error as Error).message}`)
  }
  releaseVolume(session, volume, lock)
}
