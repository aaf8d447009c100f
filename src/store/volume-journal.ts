import { Journal } from '../ownership/journal/journal.ts'
import type { WalkCounts, WalkReport } from '../ownership/walk/report.ts'
import type { WalkOptions } from '../ownership/walks.ts'
import { Refusal } from '../refusal/refusal.ts'
import { JOURNAL_FILE, journalFile, volumeStateDirectory } from './paths.ts'
import type { Session } from './session.ts'
import { removeWalkProgress, writeWalkProgress } from './walk-progress.ts'

/**
 * The journal of a volume. Call it under the volume's lock.
 * @param known a walk is recorded, so that there must be one; otherwise it is made if there is none
 */
export function openJournal({ host, config }: Session, volume: string, known: boolean): Journal {
  return Journal.open(host, journalFile(config.stateDir, volume), volume, known)
}

/**
 * The journal of a volume, if it has one, for looking only. A walk may be writing to it meanwhile.
 * @param known a walk is recorded, so that there must be one
 * @throws {Refusal} where it is missing or cannot be used
 */
export function openJournalForReading(session: Session, volume: string, known: boolean): Journal | undefined {
  const { host, config } = session
  const path = journalFile(config.stateDir, volume)
  if (hasJournal(session, volume)) return Journal.openForReading(host, path, volume, known)
  if (!known) return undefined
  throw new Refusal(`the ownership journal ${path} is missing, although the volume was walked before`)
}

/** Without a record that can be read, it tells that the volume was walked. */
export function hasJournal({ host, config }: Session, volume: string): boolean {
  return host.files.list(volumeStateDirectory(config.stateDir, volume)).includes(JOURNAL_FILE)
}

/** Whether nothing is recorded of a volume. Call it under the volume's lock; `known` and errors as of `openJournal`. */
export function isJournalEmpty(session: Session, volume: string, known = false): boolean {
  const journal = openJournal(session, volume, known)
  try {
    return journal.isEmpty()
  } finally {
    journal.close()
  }
}

export function noteWalk(session: Session, { visited, changed, alreadyRight, left }: WalkReport): void {
  session.note({ inodes: { visited, changed, alreadyRight, left } })
}

/** Runs a walk of a volume, telling how far it is: whoever called it, and whoever looks into the state directory. */
export async function walkWith(
  { host, config, workerPool, progress }: Session,
  volume: string,
  walk: (options: WalkOptions) => Promise<WalkReport>,
): Promise<WalkReport> {
  const tell = (counts: WalkCounts) => {
    writeWalkProgress(host, config.stateDir, volume, { pid: process.pid, at: Date.now(), ...counts })
    progress?.(counts)
  }
  try {
    return await walk({ ...(workerPool && { workerPool }), progress: tell })
  } finally {
    removeWalkProgress(host, config.stateDir, volume)
  }
}
