import { quoteValue, Refusal } from '../../errors/refusal.ts'
import { DirentIterator } from '../../kernel/dirents.ts'
import type { Handle, Inodes } from '../../kernel/host.ts'
import { ignoreVanishedEntry } from './entry.ts'

/**
 * Time for which a walk continues however much is moved. Of the 10 s of a call, the rest is for the batches in progress
 * and the journal.
 */
const LIVELOCK_GRACE_MS = 6000
/**
 * Limit of entries created or moved for each entry that stayed in place. A walk takes at most three times as long as in
 * a quiet volume.
 */
const MAX_MOVED_ENTRY_RATIO = 2
/** A slow server returns only a few entries in that time, which prove nothing. */
const MIN_MOVED_ENTRIES_TO_END_WALK = 1000
/** Number of entries inspected in each block of a directory that changes. */
const ENTRY_SAMPLE_SIZE = 32
// ctime comes from a clock that advances every few milliseconds.
export const CTIME_CLOCK_SLACK_MS = 100

/** A directory that is being read. */
export interface DirectoryReadProgress {
  handle: Handle
  path: Uint8Array
  /** ctime when it was last inspected, milliseconds. */
  changed: number
  /** The directory or one above it was created or moved since the walk began. */
  isMoved: boolean
  /** Entries that were counted, but are read again. */
  rereadCount: number
}

/**
 * Stops a walk that would never end. Entries that stay in place are visited once, so they end. Entries that are created
 * or moved meanwhile can be visited indefinitely.
 * An entry counts as moved if its ctime and its directory's are later than the start of the walk, or if it is below
 * such a directory. No user can set ctime.
 */
export class LivelockGuard {
  readonly #graceMs: number
  readonly #startedAtMs = performance.now()
  readonly #recentFromMs = Date.now() - CTIME_CLOCK_SLACK_MS
  #inPlace = 0
  #moved = 0
  #lastPath: Uint8Array | undefined

  /** @param graceMs time for which a walk continues however much is moved */
  constructor(graceMs = LIVELOCK_GRACE_MS) {
    this.#graceMs = graceMs
  }

  /** Returns whether a ctime is later than the start of the walk. A ctime in the future shows nothing. */
  isRecent(changed: number): boolean {
    return changed >= this.#recentFromMs && changed <= Date.now() + CTIME_CLOCK_SLACK_MS
  }

  /** Counts entries that were read and are about to be visited. */
  countEntries(inodes: Inodes, read: DirectoryReadProgress, block: DirentIterator): void {
    const count = Math.max(0, block.rest - read.rereadCount)
    read.rereadCount = 0
    const share = read.isMoved ? 1 : this.isRecent(read.changed) ? this.#sampleRecentShare(inodes, read, block) : 0
    const moved = Math.round(share * count)
    this.#inPlace += count - moved
    if (moved > 0) this.countMoved(moved, read.path)
  }

  /** Counts work that an unchanging tree would not cause. @param path where it happened */
  countMoved(count: number, path: Uint8Array): void {
    this.#moved += count
    this.#lastPath = path
  }

  /** Returns the share of recent entries in a block, from a random sample that users cannot predict. */
  #sampleRecentShare(inodes: Inodes, { handle }: DirectoryReadProgress, { bytes }: DirentIterator): number {
    const entries = new DirentIterator(bytes)
    const step = Math.max(1, entries.rest / ENTRY_SAMPLE_SIZE)
    let [sampled, recent] = [0, 0]
    let next = Math.random() * step
    for (let at = 0; entries.next(); at++) {
      if (at < Math.floor(next)) continue
      next += step
      sampled++
      const changed = ignoreVanishedEntry(() => inodes.viewEntry(handle, entries.name).changed)
      if (changed === undefined || this.isRecent(changed)) recent++
    }
    return sampled === 0 ? 0 : recent / sampled
  }

  /** @throws {Refusal} if the volume changes faster than it can be walked */
  check(): void {
    if (this.#moved <= MAX_MOVED_ENTRY_RATIO * this.#inPlace + MIN_MOVED_ENTRIES_TO_END_WALK) return
    if (performance.now() - this.#startedAtMs < this.#graceMs) return
    throw Refusal.of(
      'volume-busy',
      `the volume changes faster than it can be walked: ${this.#moved} entries were made or moved since the walk began, and ${this.#inPlace} were in their places; ` +
        `the last ones were in directory ${quotePathBytes(this.#lastPath)}`,
      'stop the programs that do this, then try again (what was changed is recorded, and the next call goes on from there)',
    )
  }
}

/** Formats a path for messages. */
export function quotePathBytes(path: Uint8Array | undefined): string {
  return quoteValue(Buffer.from(path ?? []).toString() || '.')
}
