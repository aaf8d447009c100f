import type { Stat } from '../../host/host.ts'
import type { InodeRecord } from '../inode/record.ts'

/** One commit to disk for so many inodes. */
const LARGEST_BATCH = 700
const SMALLEST_BATCH = 8
/** What is open beside: directories on its way, and Node's own. */
const OTHER_HANDLES = 100

/** One is collected and recorded, while the changes of the one before are made. */
export const BATCHES = 2
/** For directories, and for all else. */
const PIPELINES = 2
/** Entries that are looked at, in runs no larger than a batch: one is dealt with meanwhile. */
const RUNS = 2

/**
 * How many inodes may be recorded at once: each is held from its look to its change.
 * @param limit handles the process may have open (RLIMIT_NOFILE)
 * @param most as many as are wanted
 */
export function batchSize(limit: number, most = LARGEST_BATCH): number {
  return Math.max(SMALLEST_BATCH, Math.min(most, Math.floor((limit - OTHER_HANDLES) / (BATCHES * PIPELINES + RUNS))))
}

/** Looks on at a walk. */
export interface Observer {
  /** Every inode, also one that is left. `stat` may be a Look. */
  visited(stat: Stat): void
  /** An inode that would be changed, in a walk that records nothing. `stat` may be a Look. */
  wouldChange(stat: Stat, record: InodeRecord): void
  /** A directory or file that the walk does not enter, as another mount or device begins there. */
  skippedBoundary?(stat: Stat): void
}

export interface BatchSettings {
  batchSize: number
  /** Called after every batch, and after every run of entries. */
  onStep?: () => void
  observer?: Observer | undefined
}
