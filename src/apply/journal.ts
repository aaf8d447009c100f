import { Journal } from '../ownership/journal.ts'
import type { WalkReport } from '../ownership/report.ts'
import { JOURNAL_FILE, volumeStateDirectory } from '../state/paths.ts'
import type { Session } from './session.ts'

/**
 * The journal of a volume. Call it under the volume's lock.
 * @param known a finished walk is recorded, so that there must be one; otherwise it is made if there is none
 */
export function openJournal({ host, config }: Session, volume: string, known: boolean): Journal {
  return new Journal(host, `${volumeStateDirectory(config.stateDir, volume)}/${JOURNAL_FILE}`, volume, known)
}

export function noteWalk(session: Session, { visited, changed, alreadyRight, left }: WalkReport): void {
  session.note({ inodes: { visited, changed, alreadyRight, left } })
}
