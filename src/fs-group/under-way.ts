import { retryUntilDefined } from '../host/back-off.ts'
import { parseMountinfo } from '../mount-table/mountinfo.ts'
import { createLocationFinder } from '../mount-table/tree-location.ts'
import { tryLockNode } from '../store/locks.ts'
import { listReservations, type Reservation } from '../store/reservation-record.ts'
import type { Session } from '../store/session.ts'
import { exportsFrom, overlap } from './overlap.ts'

/** What is to be mapped without a lock of the volume, which is on record by now. */
export interface Relied {
  /** The volume's identity. */
  volume: string
  /** Its real path on the node. */
  source: string
  /** On disk. */
  group: number
}

/**
 * Calls at work on volumes, on parts of them or on what they are parts of, and not for the group that they have.
 * Whoever begins later finds what is on record, and refuses: calls that reserve look at that under the same lock.
 * @returns for each volume who is at work, in the same order
 * @throws {Refusal} where the reservation of a call at work cannot be read
 */
export async function underWay(session: Session, volumes: readonly Relied[]): Promise<(Reservation | undefined)[]> {
  using _ = await retryUntilDefined(() => tryLockNode(session, 'reservations'))
  const reserved = listReservations(session)
  // As nearly always: the mount table is not read then.
  if (reserved.length === 0) return volumes.map(() => undefined)
  const rows = parseMountinfo(session.host.mounts.table())
  const [locationOf, exportOf] = [createLocationFinder(rows), exportsFrom(rows)]
  const calls = reserved.flatMap(({ record, problem }) => {
    if (problem) throw problem
    return record ? [{ ...record, exported: record.source === undefined ? undefined : exportOf(record.source) }] : []
  })
  return volumes.map(({ volume, source, group }) => {
    const asked = { volume, source, location: locationOf(source), exported: exportOf(source) }
    return calls.find((call) => call.group !== group && overlap(call, asked))
  })
}
