import * as z from 'zod/mini'
import type { SkipReason, WalkReport } from '../ownership/walk/report.ts'

export const skippedInodesSchema = () =>
  z.object({
    applied: z.number(),
    total: z.number(),
    /** The largest count first. */
    reasons: z.array(z.object({ reason: z.string(), count: z.number(), example: z.string() })),
  })

/** Number of inodes to which the last walk of a volume applied the group, and its reasons to skip others. */
export type SkippedInodes = z.infer<ReturnType<typeof skippedInodesSchema>>

/** A symbolic link has no access of its own, so the group does not concern it. */
const WITHOUT_ACCESS: SkipReason = 'symlink'
/** The group was applied to these inodes. */
const APPLIED: SkipReason = 'privileges not given back'
/** The kernel or the file system rejected the change, so the pod's group lacks access that it was promised. */
const REJECTED: ReadonlySet<string> = new Set<SkipReason>(['immutable or append-only', 'read-only', 'over quota'])

/** Returns undefined if the walk skipped nothing. */
export function countSkipped({ changed, alreadyRight, left }: WalkReport): SkippedInodes | undefined {
  const reasons = Object.entries(left)
    .filter(([reason]) => reason !== WITHOUT_ACCESS)
    .map(
      ([
        reason,
        {
          count,
          examples: [example = ''],
        },
      ]) => ({ reason, count, example }),
    )
    .sort((one, other) => other.count - one.count)
  if (reasons.length === 0) return undefined
  const applied = changed + alreadyRight
  const skipped = reasons.reduce((sum, { reason, count }) => (reason === APPLIED ? sum : sum + count), 0)
  return { applied, total: applied + skipped, reasons }
}

/** Returns whether the kernel or the file system rejected the group of an inode. */
export const hasRejected = ({ reasons }: SkippedInodes): boolean => reasons.some(({ reason }) => REJECTED.has(reason))

export function formatSkipped(group: number, { applied, total, reasons }: SkippedInodes): string {
  const skipped = reasons.map(({ reason, count, example }) => {
    const first = example === '' ? '' : ` (first ${JSON.stringify(example)})`
    return `${reason}: ${count}${first}`
  })
  return `group ${group} was applied to ${applied} of ${total}, ${skipped.join(', ')}`
}
