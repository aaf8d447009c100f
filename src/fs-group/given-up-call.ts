import { Refusal } from '../errors/refusal.ts'
import { mountRecords } from '../store/mount-record.ts'
import type { Session } from '../store/session.ts'
import { hasJournal } from '../store/volume-journal.ts'
import { createGivenUpFault, recordGivenUp } from '../worker/given-up.ts'

/**
 * Refuses a mount call that another process ran before and that was given up. That process recorded the mount before it
 * walked the volume.
 * @throws {Refusal} if there was such a process
 */
export function refuseGivenUp(session: Session, directory: string): void {
  const { givenUp } = session
  if (givenUp === undefined) return
  const { volume } = mountRecords.find(session, directory).record ?? {}
  if (volume !== undefined && hasJournal(session, volume)) recordGivenUp(session, volume, givenUp)
  throw new Refusal(createGivenUpFault(givenUp))
}

/**
 * Refuses the restore of a volume that an unmount runs.
 * @throws {Refusal} if a process that made the unmount before was given up
 */
export function refuseGivenUpRestore(session: Session, volume: string): void {
  const { givenUp } = session
  if (givenUp === undefined) return
  recordGivenUp(session, volume, givenUp)
  throw new Refusal(createGivenUpFault(givenUp))
}
