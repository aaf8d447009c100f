/** Why an inode was left as it is. */
export const LEFT_REASONS = [
  'symlink',
  'device',
  'sub-mount',
  'linked outside the volume',
  'changed since by its user',
  'gone or replaced during the walk',
  // Or what may have been one. Unlike those, it may be somewhere else in the volume, with all that is in it.
  'directory gone or replaced during the walk',
  'changed during the walk',
  'privileges not given back',
  'moved during the walk',
  'immutable or append-only',
  'read-only',
  'over quota',
] as const

export type LeftReason = (typeof LEFT_REASONS)[number]

/** What a walk did: counts of inodes, and for each reason the first few paths, enough to look at. */
export interface WalkReport {
  visited: number
  changed: number
  alreadyRight: number
  left: Partial<Record<LeftReason, { count: number; examples: string[] }>>
  /** Why the walk skipped the root of the volume; undefined if it did not. */
  root?: LeftReason
}

/** Whether all directories were read to their end that were there from the beginning, as far as the walk could tell. */
export function hasEnteredAll({ left }: WalkReport): boolean {
  return !left['directory gone or replaced during the walk'] && !left['moved during the walk']
}

/** How far a walk is. */
export type WalkCounts = Pick<WalkReport, 'visited' | 'changed'>

const MOST_EXAMPLES = 3
/** The root has no path in the volume. */
const ROOT = '.'

export function newReport(): WalkReport {
  return { visited: 0, changed: 0, alreadyRight: 0, left: {} }
}

/** @param path undefined: it is not remembered any more */
export function leave(report: WalkReport, reason: LeftReason, path: Uint8Array | undefined): void {
  const entry = entryOf(report, reason)
  entry.count++
  if (path?.length === 0) report.root = reason
  if (path && entry.examples.length < MOST_EXAMPLES) entry.examples.push(Buffer.from(path).toString() || ROOT)
}

function entryOf(report: WalkReport, reason: LeftReason) {
  const entry = report.left[reason] ?? { count: 0, examples: [] }
  report.left[reason] = entry
  return entry
}
