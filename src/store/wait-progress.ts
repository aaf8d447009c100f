import { mountRecords } from './mount-record.ts'
import type { RecordDirectory } from './record-directories.ts'
import type { Session } from './session.ts'
import { walkProgress } from './walk-progress.ts'

/** Milliseconds between two reports. A walk records its progress about as often. */
const WAIT_REPORT_INTERVAL_MS = 1000

/**
 * Returns a function that a call runs repeatedly while it waits for a record directory. The function reports to the
 * session the progress of the walk that the other call runs, if any. For a mount directory, that is the walk of the
 * volume that is being mounted.
 */
export function createWaitReporter(session: Session, directory: RecordDirectory): () => void {
  const { waits } = session
  if (waits === undefined) return () => {}
  let next = performance.now() + WAIT_REPORT_INTERVAL_MS
  return () => {
    if (performance.now() < next) return
    next = performance.now() + WAIT_REPORT_INTERVAL_MS
    const volume = directory.volume ?? mountRecords.find(session, directory.name).record?.volume
    const walk = volume ? walkProgress.find(session, volume).record : undefined
    if (walk !== undefined) waits({ visited: walk.visited, changed: walk.changed })
  }
}
