/** Reasons why an inode was skipped. */
export const SKIP_REASONS = [
  'symlink',
  'device',
  'sub-mount',
  'linked outside the volume',
  'changed since by its user',
  'gone or replaced during the walk',
  // Also an entry that may have been a directory. It may now be elsewhere in the volume, with all of its contents.
  'directory gone or replaced during the walk',
  'changed during the walk',
  'privileges not given back',
  'moved during the walk',
  'immutable or append-only',
  'read-only',
  'over quota',
] as const

export type SkipReason = (typeof SKIP_REASONS)[number]

/** Counts of a walk's inodes, and the first few paths for each reason. */
export interface WalkReport {
  visited: number
  changed: number
  alreadyRight: number
  left: Partial<Record<SkipReason, { count: number; examples: string[] }>>
  /** Reason for skipping the root of the volume; undefined: it was not skipped. */
  root?: SkipReason
}

/** Returns whether the walk, as far as it can know, read every directory that existed from its start. */
export function isEveryDirectoryEntered({ left }: WalkReport): boolean {
  return !left['directory gone or replaced during the walk'] && !left['moved during the walk']
}

export type WalkCounts = Pick<WalkReport, 'visited' | 'changed'>

const MAX_SKIP_EXAMPLES = 3
/** The root's path is empty. */
const SHOWN_ROOT_PATH = '.'

export function createWalkReport(): WalkReport {
  return { visited: 0, changed: 0, alreadyRight: 0, left: {} }
}

/** @param path undefined: it is no longer remembered */
export function recordSkippedInode(report: WalkReport, reason: SkipReason, path: Uint8Array | undefined): void {
  const entry = getSkipReasonEntry(report, reason)
  entry.count++
  if (path?.length === 0) report.root = reason
  if (path && entry.examples.length < MAX_SKIP_EXAMPLES)
    entry.examples.push(Buffer.from(path).toString() || SHOWN_ROOT_PATH)
}

function getSkipReasonEntry(report: WalkReport, reason: SkipReason) {
  const entry = report.left[reason] ?? { count: 0, examples: [] }
  report.left[reason] = entry
  return entry
}

/** Called at most about once a second while a walk runs. */
export type ProgressListener = (counts: WalkCounts) => void

const PROGRESS_INTERVAL_MS = 1000

/** Reports a walk's progress at intervals. */
export class ProgressReporter {
  readonly #listener: ProgressListener | undefined
  #reportedAtMs = performance.now()

  constructor(listener: ProgressListener | undefined) {
    this.#listener = listener
  }

  /** Call it often; most calls report nothing. */
  report({ visited, changed }: WalkCounts): void {
    const now = performance.now()
    if (now - this.#reportedAtMs < PROGRESS_INTERVAL_MS) return
    this.#reportedAtMs = now
    this.#listener?.({ visited, changed })
  }
}
