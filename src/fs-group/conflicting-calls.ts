import { parseMountinfo } from '../mount-table/mountinfo.ts'
import { createLocationFinder } from '../mount-table/tree-location.ts'
import { acquireNodeLock } from '../store/locks.ts'
import { listReservations, type Reservation } from '../store/reservation-record.ts'
import type { Session } from '../store/session.ts'
import { createExportFinder, overlap } from './overlap.ts'

/** A volume that will be mapped without its lock. The mapping is recorded already. */
export interface PlannedMapping {
  /** Identity of the volume. */
  volume: string
  /** Its real path on the node. */
  source: string
  /** Group id on disk. */
  group: number
}

/**
 * Finds calls that work on volumes, on parts of them or on trees that contain them, for another group than they have. A
 * call that starts later finds the recorded mapping and refuses, because it checks the records under the same lock.
 * @returns the reservation of such a call for each volume, in the same order
 * @throws {Refusal} if the reservation of a call at work cannot be read
 */
export async function findConflictingCalls(
  session: Session,
  volumes: readonly PlannedMapping[],
): Promise<(Reservation | undefined)[]> {
  using _ = await acquireNodeLock(session, 'reservations')
  const reserved = listReservations(session)
  // This is the usual case, in which the mount table is not read.
  if (reserved.length === 0) return volumes.map(() => undefined)
  const rows = parseMountinfo(session.host.mounts.table())
  const [findLocation, findExport] = [createLocationFinder(rows), createExportFinder(rows)]
  const calls = reserved.flatMap(({ record, problem }) => {
    if (problem) throw problem
    return record ? [{ ...record, exported: record.source === undefined ? undefined : findExport(record.source) }] : []
  })
  return volumes.map(({ volume, source, group }) => {
    const sought = { volume, source, location: findLocation(source), exported: findExport(source) }
    return calls.find((call) => call.group !== group && overlap(call, sought))
  })
}
