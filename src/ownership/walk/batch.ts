import type { Stat } from '../../host/host.ts'
import type { InodeRecord } from '../inode/record.ts'

/** Inodes recorded by one commit. */
const MAX_BATCH = 700
const MIN_BATCH = 8
/** Handles not used by batches: the directories on the stack, and those of Node itself. */
const RESERVED_HANDLES = 100

/** One batch is collected and recorded while the changes of the previous one are made. */
export const BATCHES = 2
/** One for directories, one for all other inodes. */
const PIPELINES = 2
/** Runs of entries, none larger than a batch. One is inspected while the other is dealt with. */
const RUNS = 2

/**
 * Returns how many inodes may be recorded at once. Each is held open from its inspection to its change.
 * @param handleLimit the process's limit of open handles (RLIMIT_NOFILE)
 * @param maxSize the largest useful batch
 */
export function computeBatchSize(handleLimit: number, maxSize = MAX_BATCH): number {
  return Math.max(
    MIN_BATCH,
    Math.min(maxSize, Math.floor((handleLimit - RESERVED_HANDLES) / (BATCHES * PIPELINES + RUNS))),
  )
}

/** Is notified of a walk's inodes. */
export interface WalkObserver {
  /** Called for every inode, also a skipped one. `stat` may be a Look. */
  onVisit(stat: Stat): void
  /** Called for an inode that would be changed, in a walk that records nothing. `stat` may be a Look. */
  onWouldChange(stat: Stat, record: InodeRecord): void
  /** Called for a directory or file that the walk does not enter, because another mount or device begins there. */
  onBoundary?(stat: Stat): void
}

export interface BatchSettings {
  batchSize: number
  /** Called after every batch, and after every run of entries. */
  onStep?: () => void
  observer?: WalkObserver | undefined
}
