import type { Journal } from '../../ownership/journal/journal.ts'
import { refusalOf } from '../../refusal/refusal.ts'
import { unlessDamaged } from '../../store/json-record.ts'
import type { Session } from '../../store/session.ts'
import { openJournalForReading } from '../../store/volume-journal.ts'
import { readVolumeRecord } from '../../store/volume-record.ts'

function openForReading(session: Session, volume: string): Journal | undefined {
  const { host, config } = session
  const known = unlessDamaged(() => readVolumeRecord(host, config.stateDir, volume)) !== undefined
  return openJournalForReading(session, volume, known)
}

/** Reads a volume's journal, if it has one. A walk may be writing to it meanwhile. */
export async function withJournal<T>(
  session: Session,
  volume: string,
  use: (journal: Journal | undefined) => T | Promise<T>,
): Promise<T> {
  const journal = openForReading(session, volume)
  try {
    return await use(journal)
  } finally {
    journal?.close()
  }
}

/** Why a volume's journal cannot be used; undefined where it can, or where there is none and need not be. */
export function journalFault(session: Session, volume: string): string | undefined {
  return refusalOf(() => {
    const journal = openForReading(session, volume)
    try {
      journal?.isEmpty()
    } finally {
      journal?.close()
    }
  })
}
