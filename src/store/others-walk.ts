import { mountRecords } from './mount-record.ts'
import type { Place } from './places.ts'
import type { Session } from './session.ts'
import { walkProgress } from './walk-progress.ts'

/** Milliseconds between two reports. A walk records its progress about as often. */
const EACH = 1000

/**
 * Returns a function that a call runs repeatedly while it waits for a record directory. The function reports to the
 * session the progress of the walk that the other call runs, if any. For a mount directory, that is the walk of the
 * volume that is being mounted.
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
