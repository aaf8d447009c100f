import type { FsGroupRequest } from '../config/mount-request.ts'
import { deferHandleClose, type Handle, type Inodes, isDirectory, type Stat } from '../kernel/host.ts'
import { formatInodeKey } from './inode/record.ts'
import type { Journal } from './journal/journal.ts'
import type { JournalQuota } from './journal/quota.ts'
import { SELF_ENTRY_NAME } from './walk/entry.ts'
import { FirstLinkFilter, HardLinkCounter } from './walk/hard-links.ts'
import { computeBatchSize, WalkLedger, type WalkObserver } from './walk/ledger.ts'
import { CTIME_CLOCK_SLACK_MS } from './walk/livelock-guard.ts'
import { isEveryDirectoryEntered, type ProgressListener, ProgressReporter, type WalkReport } from './walk/report.ts'
import type { WalkStrategySpec } from './walk/strategies.ts'
import { traverseTree } from './walk/traverse.ts'
import { TreeWalk } from './walk/walk.ts'

export interface WalkOptions {
  progress?: ProgressListener | undefined
  /** Limits of the journal, for a walk that applies a group. */
  quota?: JournalQuota | undefined
  /** Decides under which of its names an inode is dealt with; undefined: the default of the walk. */
  names?: HardLinkCounter | FirstLinkFilter | undefined
  /** Called regularly during any work, so its absence means that the walk waits for the file system. */
  pulse?: (() => void) | undefined
  /** Maximum number of inodes that are recorded at once, and changed between two calls of `pulse`. */
  largestBatch?: number | undefined
}

/** Interval after which signals and timers are handled. */
const YIELD_INTERVAL_MS = 50

/**
 * Applies a group to every inode of a tree. It may be repeated and may be killed: correct inodes are not touched,
 * recorded changes are completed, and inodes changed by users since are skipped.
 * @param root the tree's root; it can be a detached mount, which no path reaches until it is done
 * @throws {Refusal} if the journal cannot be used
 * @throws {SystemError} if an inode fails with an error that does not concern it alone
 */
export async function applyGroupToTree(
  inodes: Inodes,
  root: Handle,
  fsGroup: FsGroupRequest,
  journal: Journal,
  options: WalkOptions = {},
): Promise<WalkReport> {
  const { quota, pulse } = options
  // Pruned before the journal is full, because a walk could then not even begin.
  if (quota !== undefined && journal.isLargerThan(quota.maxBytes / 2))
    await pruneJournal(inodes, root, journal, { pulse })
  journal.setQuota(quota)
  const report = await walkTree(inodes, root, createGroupStrategySpec(fsGroup, journal), journal, options)
  journal.setQuota(undefined)
  return finishWalk(inodes, root, journal, report, options)
}

/**
 * Restores every recorded inode of a tree: group, mode, set-id bits, ACL, capability. Inodes changed by users since are
 * skipped.
 * Only records of restored inodes are dropped, because an inode that was not visited may be visited another time. It
 * may be repeated and may be killed.
 * The report counts restored inodes as `changed`, and those that already were as recorded as `alreadyRight`.
 * @param isForced also restores inodes changed by users, if they certainly are the recorded inodes
 * @param toBaseline inodes with a baseline of `apply` return to that, and stay recorded
 * @throws as `applyGroupToTree`
 */
export async function restoreTreeOwnership(
  inodes: Inodes,
  root: Handle,
  journal: Journal,
  options: WalkOptions = {},
  isForced = false,
  toBaseline = false,
): Promise<WalkReport> {
  journal.beginRestore()
  const report = await walkTree(inodes, root, { do: 'restore', isForced, toBaseline }, journal, options)
  return finishWalk(inodes, root, journal, report, options)
}

async function finishWalk(
  inodes: Inodes,
  root: Handle,
  journal: Journal,
  report: WalkReport,
  { pulse }: WalkOptions,
): Promise<WalkReport> {
  journal.confirm(hasWalkVisitedAllInodes(report))
  if (journal.isOvergrown(report.visited)) await pruneJournal(inodes, root, journal, { pulse })
  return report
}

/**
 * Forgets the inodes that were deleted from a tree. It may be killed.
 * An inode that is moved during the walk may not be visited, although it exists. A directory has then changed, and
 * nothing is forgotten.
 * @returns isPruned: whether the tree did not change
 * @throws as `applyGroupToTree`
 */
export async function pruneJournal(
  inodes: Inodes,
  root: Handle,
  journal: Journal,
  { progress, pulse, largestBatch }: WalkOptions = {},
): Promise<{ report: WalkReport; isPruned: boolean }> {
  // Earlier changes must not seem to be made now.
  await new Promise((resolve) => setTimeout(resolve, 2 * CTIME_CLOCK_SLACK_MS))
  const started = Date.now() - CTIME_CLOCK_SLACK_MS
  const key = new DataView(new ArrayBuffer(16))
  let isStill = true
  const onVisit = (stat: Stat) => {
    if (isDirectory(stat) && stat.changed >= started) isStill = false
    key.setBigUint64(0, stat.inode, true)
    key.setBigInt64(8, stat.born, true)
    journal.markVisited(key)
  }
  const { mountId } = inodes.stat(root)
  let isHidden = false
  const onBoundary = (stat: Stat) => {
    if (stat.mountId !== mountId) isHidden = true
  }
  const observer = { onVisit, onWouldChange: () => {}, onBoundary }
  const options = { observer, progress, pulse, largestBatch }
  const report = await walkTree(inodes, root, { do: 'meet' }, journal, options, true)
  // Another mount hides a directory of the volume. A subvolume hides none, and its inodes are never recorded.
  const isPruned = isStill && hasWalkVisitedAllInodes(report) && !isHidden
  if (isPruned) journal.forgetUnvisited()
  return { report, isPruned }
}

/** Returns whether the walk skipped no inode that may have a record. */
function hasWalkVisitedAllInodes(report: WalkReport): boolean {
  const { left } = report
  return (
    isEveryDirectoryEntered(report) && !left['linked outside the volume'] && !left['gone or replaced during the walk']
  )
}

/**
 * Walks without recording or changing anything: `changed` counts what would be changed.
 * @param journal records of earlier walks; undefined: none
 */
export async function surveyTree(
  inodes: Inodes,
  root: Handle,
  task: SurveyTask,
  journal: Journal | undefined,
  options: { observer?: WalkObserver; progress?: ProgressListener | undefined },
): Promise<WalkReport> {
  const spec = task.do === 'apply' ? createGroupStrategySpec(task.fsGroup, journal) : task
  return walkTree(inodes, root, spec, journal, options, true)
}

/** @param journal the volume's journal; undefined: it has none */
function createGroupStrategySpec(fsGroup: FsGroupRequest, journal: Journal | undefined): WalkStrategySpec {
  return {
    do: 'apply',
    fsGroup,
    isFirstWalk: journal?.isNew() ?? true,
    startedAtMs: Date.now() - CTIME_CLOCK_SLACK_MS,
    unfinished: new Set(journal?.readUnfinished().map(formatInodeKey)),
    hasRestoreBegun: journal?.hasRestoreBegun ?? false,
  }
}

/**
 * Walks a tree, its root last.
 * @throws {Refusal} {SystemError} of the error that stopped it; changes made so far are recorded
 */
async function walkTree(
  inodes: Inodes,
  root: Handle,
  spec: WalkStrategySpec,
  journal: Journal | undefined,
  {
    progress,
    pulse,
    largestBatch,
    observer,
    // A group is applied under the last name, when all were seen within the volume. A restore uses the first.
    names = spec.do === 'apply' ? new HardLinkCounter() : new FirstLinkFilter(),
  }: WalkOptions & { observer?: WalkObserver },
  isSurvey = false,
): Promise<WalkReport> {
  const top = inodes.openDirectory(root, SELF_ENTRY_NAME)
  using _ = deferHandleClose(inodes, top)
  // The caller settles and forgets after this walk, too, and keeps the root open until then.
  journal?.setVolumeSync(() => inodes.syncFileSystem(root))
  // A crashed walk's changes must be durable before an inode is recorded with the state that they left.
  if (!isSurvey && journal?.hasUnfinished) inodes.syncFileSystem(root)
  const stat = inodes.stat(top)
  const progressReporter = new ProgressReporter(progress)
  const reportProgress = () => {
    pulse?.()
    progressReporter.report(walk.report)
  }
  using walk: TreeWalk = new TreeWalk(inodes, spec, new WalkLedger(journal, names, isSurvey), {
    boundary: { mountId: stat.mountId, device: stat.device },
    observer,
    // The decision needs the ACL with `grant`, and later changes if there is a record.
    isStatOnly: isSurvey && spec.do === 'apply' && spec.isFirstWalk && spec.fsGroup.access === 'keep',
    batchSize: computeBatchSize(inodes.handleLimit(), spec.do === 'apply' ? 1 : 2, largestBatch),
    onStep: reportProgress,
  })
  let turn = performance.now() + YIELD_INTERVAL_MS
  const isRootOnly = spec.do === 'apply' && spec.fsGroup.isRootOnly
  for (const _ of isRootOnly ? [] : traverseTree(inodes, top, stat, walk)) {
    pulse?.()
    if (performance.now() < turn) continue
    reportProgress()
    await new Promise((resolve) => setImmediate(resolve))
    turn = performance.now() + YIELD_INTERVAL_MS
  }
  // The root is changed last, because a matching root means a completed walk.
  walk.releaseHandles(true)
  walk.visitDirectory(top, new Uint8Array())
  walk.releaseHandles()
  for (const path of names.listOutside()) walk.skip('linked outside the volume', path)
  return walk.report
}

/** A walk of a volume. It can be written as JSON, for a worker process. */
export type WalkTask =
  | { do: 'apply'; fsGroup: FsGroupRequest }
  | { do: 'restore'; isForced: boolean; toBaseline?: boolean }
  | { do: 'prune' }

/** A walk that a survey simulates. */
export type SurveyTask = Exclude<WalkTask, { do: 'prune' }>

export interface WalkResult {
  report: WalkReport
  /** After a restore: the journal still has records. */
  isStillRecorded: boolean
  /** The journal has forgotten the inodes that were deleted. */
  isPruned?: boolean
}

/** @throws as `applyGroupToTree`, `restoreTreeOwnership` and `pruneJournal` */
export async function runWalkTask(
  task: WalkTask,
  inodes: Inodes,
  root: Handle,
  journal: Journal,
  options: WalkOptions,
): Promise<WalkResult> {
  if (task.do === 'apply')
    return { report: await applyGroupToTree(inodes, root, task.fsGroup, journal, options), isStillRecorded: true }
  if (task.do === 'prune') return { ...(await pruneJournal(inodes, root, journal, options)), isStillRecorded: true }
  const report = await restoreTreeOwnership(inodes, root, journal, options, task.isForced, task.toBaseline)
  return { report, isStillRecorded: !journal.isEmpty() }
}
