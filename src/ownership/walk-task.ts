import type { Handle, Inodes } from '../host/host.ts'
import type { GroupPolicy } from './inode/policy.ts'
import type { Journal } from './journal/journal.ts'
import type { WalkReport } from './walk/report.ts'
import { applyGroup, pruneJournal, restoreOwnership, type WalkOptions } from './walks.ts'

/** A walk of a volume. It can be written as JSON, for a worker process. */
export type WalkTask =
  | { do: 'own'; order: GroupPolicy }
  | { do: 'restore'; isForced: boolean; toBaseline?: boolean }
  | { do: 'prune' }

export interface WalkResult {
  report: WalkReport
  /** After a restore: the journal still has records. */
  isStillRecorded: boolean
  /** The journal has forgotten the inodes that were deleted. */
  isPruned?: boolean
}

/** @throws as `applyGroup`, `restoreOwnership` and `pruneJournal` */
export async function runWalkTask(
  task: WalkTask,
  inodes: Inodes,
  root: Handle,
  journal: Journal,
  options: WalkOptions,
): Promise<WalkResult> {
  if (task.do === 'own') {
    const report = await applyGroup(inodes, root, task.order, journal, options)
    return { report, isStillRecorded: true }
  }
  if (task.do === 'prune') return { ...(await pruneJournal(inodes, root, journal, options)), isStillRecorded: true }
  const report = await restoreOwnership(inodes, root, journal, options, task.isForced, task.toBaseline)
  return { report, isStillRecorded: !journal.isEmpty() }
}
