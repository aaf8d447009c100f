import { Journal } from '../../ownership/journal/journal.ts'
import { Refusal } from '../../refusal/refusal.ts'
import { journalFile } from '../../store/paths.ts'
import type { Session } from '../../store/session.ts'
import { hasJournal } from '../../store/volume-journal.ts'
import { readVolumeRecord } from '../../store/volume-record.ts'

/** Reads a volume's journal, if it has one. A walk may be writing to it meanwhile. */
export function withJournal<T>(session: Session, volume: string, use: (journal: Journal | undefined) => T): T {
  const { host, config } = session
  const known = readVolumeRecord(host, config.stateDir, volume) !== undefined
  const there = hasJournal(session, volume)
  const path = journalFile(config.stateDir, volume)
  if (!there && known)
    throw new Refusal(`the ownership journal ${path} is missing, although the volume was walked before`)
  if (!there) return use(undefined)
  const journal = new Journal(host, path, volume, known, true)
  try {
    return use(journal)
  } finally {
    journal.close()
  }
}
