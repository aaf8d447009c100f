import { Journal } from '../ownership/journal/journal.ts'
import type { Counts } from '../ownership/progress.ts'
import type { WalkReport } from '../ownership/walk/report.ts'
import type { WalkOptions } from '../ownership/walk-tree.ts'
import { JOURNAL_FILE, journalFile, volumeStateDirectory } from './paths.ts'
import type { Session } from './session.ts'
import { removeWalkProgress, writeWalkProgress } from './walk-progress.ts'

/**
 * The journal of a volume. Call it under the volume's lock.
 * @param known a walk is recorded, so that there must be one; otherwise it is made if there is none
 */
export function openJournal({ host, config }: Session, volume: string, known: boolean): Journal {
  return new Journal(host, journalFile(config.stateDir, volume), volume, known)
}

/** Without a record that can be read, it tells that the volume was walked. */
export function hasJournal({ host, config }: Session, volume: string): boolean {
  return host.files.list(volumeStateDirectory(config.stateDir, volume)).includes(JOURNAL_FILE)
}

/** Whether nothing is recorded of a volume. Call it under the volume's lock. @throws as `openJournal` does */
export function isJournalEmpty(session: Session, volume: string): boolean {
  const journal = openJournal(session, volume, false)
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
  const tell = (counts: Counts) => {
    writeWalkProgress(host, config.stateDir, volume, { pid: process.pid, at: Date.now(), ...counts })
    progress?.(counts)
  }
  try {
    return await walk({ ...(workerPool && { workerPool }), progress: tell })
  } finally {
    removeWalkProgress(host, config.stateDir, volume)
  }
}
