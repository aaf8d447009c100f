import { mountRecords } from './mount-record.ts'
import type { Place } from './places.ts'
import type { Session } from './session.ts'
import { walkProgress } from './walk-progress.ts'

/** Milliseconds: a walk writes down about as often how far it is. */
const EACH = 1000

/**
 * For who waits for a place, to be called again and again: has the session told how far the walk is that another call is at
 * there, if it is one. Of a mount directory, the walk of the volume that is being mounted.
 */
export function walkTeller(session: Session, place: Place): () => void {
  const { waits } = session
  if (waits === undefined) return () => {}
  let next = performance.now() + EACH
  return () => {
    if (performance.now() < next) return
    next = performance.now() + EACH
    const volume = place.volume ?? mountRecords.find(session, place.name).record?.volume
    const walk = volume ? walkProgress.find(session, volume).record : undefined
    if (walk !== undefined) waits({ visited: walk.visited, changed: walk.changed })
  }
}
