import { closing, type Handle, type Inodes, isDirectory, type Stat } from '../host/host.ts'
import type { OwnOrder } from './inode/policy.ts'
import { keyOf } from './inode/record.ts'
import type { Journal } from './journal/journal.ts'
import type { Quota } from './journal/room.ts'
import { batchSize, type Observer } from './walk/batch.ts'
import { SELF } from './walk/entry.ts'
import { FirstNames, HardLinks } from './walk/hard-links.ts'
import { Ledger } from './walk/ledger.ts'
import { Progress, type ProgressListener } from './walk/progress.ts'
import { hasEnteredAll, type WalkReport } from './walk/report.ts'
import type { TaskSpec } from './walk/tasks.ts'
import { traverse } from './walk/traverse.ts'
import { Walk } from './walk/walk.ts'

export interface WalkOptions {
  progress?: ProgressListener | undefined
  /** What the journal may take, for a walk that gives a group. */
  quota?: Quota | undefined
  /** Under which of its names an inode with several is dealt with; undefined: as the walk needs it. */
  names?: HardLinks | FirstNames | undefined
  /** Called again and again, whatever is being done: who waits for the file system in between does not call it. */
  pulse?: (() => void) | undefined
  /** The most inodes that are recorded at once, and changed between two calls of `pulse`. */
  largestBatch?: number | undefined
}

/** After which signals and timers have their turn. */
const TURN_MS = 50

// ctime comes from a clock that ticks every few milliseconds.
const CLOCK_SLACK_MS = 100

/**
 * Gives every inode of a tree to a group. May be repeated and may be killed: what is right is not touched, what was
 * recorded is finished, what its users changed since is left.
 * @param root the tree's root; a detached mount serves, so that no path leads to it before it is done
 * @throws {Refusal} when the journal cannot be used, {SystemError} when an inode fails in a way that is not its own
 */
export async function own(
  inodes: Inodes,
  root: Handle,
  order: OwnOrder,
  journal: Journal,
  options: WalkOptions = {},
): Promise<WalkReport> {
  const { quota, pulse } = options
  // Before it is full: then a walk could not even begin.
  if (quota !== undefined && journal.isLargerThan(quota.most / 2)) await prune(inodes, root, journal, { pulse })
  journal.limitTo(quota)
  const report = await walkTree(inodes, root, ownSpec(order, journal), journal, options)
  journal.limitTo(undefined)
  return finish(inodes, root, journal, report, options)
}

/**
 * Puts every recorded inode of a tree back to what it was: group, mode, set-id bits, ACL, capability. What somebody
 * changed since is left. Only what was put back is forgotten: an inode that was not met may be met another time.
 * May be repeated and may be killed.
 * In the report `changed` counts what was put back, `alreadyRight` what already was as recorded.
 * @param isForced also what somebody changed since is put back, where it is surely the inode that was recorded
 * @param toBaseline inodes that `apply` has set a baseline of return to that, and stay recorded
 * @throws as `own` does
 */
export async function restore(
  inodes: Inodes,
  root: Handle,
  journal: Journal,
  options: WalkOptions = {},
  isForced = false,
  toBaseline = false,
): Promise<WalkReport> {
  journal.beginRestore()
  const report = await walkTree(inodes, root, { do: 'restore', isForced, toBaseline }, journal, options)
  return finish(inodes, root, journal, report, options)
}

async function finish(
  inodes: Inodes,
  root: Handle,
  journal: Journal,
  report: WalkReport,
  { pulse }: WalkOptions,
): Promise<WalkReport> {
  journal.confirm(hasMetAll(report))
  if (journal.isOvergrown(report.visited)) await prune(inodes, root, journal, { pulse })
  return report
}

/**
 * Forgets the inodes that are gone from a tree. One that is moved while the tree is looked at may not be met, though it
 * is there; but then a directory that is has changed: nothing is forgotten. May be killed.
 * @returns isPruned: whether the tree stood still
 * @throws as `own` does
 */
export async function prune(
  inodes: Inodes,
  root: Handle,
  journal: Journal,
  { progress, pulse, largestBatch }: WalkOptions = {},
): Promise<{ report: WalkReport; isPruned: boolean }> {
  // What was changed before must not seem to be changed now.
  await new Promise((resolve) => setTimeout(resolve, 2 * CLOCK_SLACK_MS))
  const started = Date.now() - CLOCK_SLACK_MS
  const key = new DataView(new ArrayBuffer(16))
  let isStill = true
  const visited = (stat: Stat) => {
    if (isDirectory(stat) && stat.changed >= started) isStill = false
    key.setBigUint64(0, stat.inode, true)
    key.setBigInt64(8, stat.born, true)
    journal.meet(key)
  }
  const { mountId } = inodes.stat(root)
  let isHidden = false
  const skippedBoundary = (stat: Stat) => {
    if (stat.mountId !== mountId) isHidden = true
  }
  const observer = { visited, wouldChange: () => {}, skippedBoundary }
  const options = { observer, progress, pulse, largestBatch }
  const report = await walkTree(inodes, root, { do: 'meet' }, journal, options, true)
  // Another mount hides a directory of the volume. A subvolume hides none, and its inodes are never recorded.
  const isPruned = isStill && hasMetAll(report) && !isHidden
  if (isPruned) journal.forgetUnmet()
  return { report, isPruned }
}

/** Whether no inode was passed over that may have a record. */
function hasMetAll(report: WalkReport): boolean {
  const { left } = report
  return hasEnteredAll(report) && !left['linked outside the volume'] && !left['gone or replaced during the walk']
}

/** What `survey` looks at a tree for: what `own` or `restore` would do. */
export type Intent = { do: 'own'; order: OwnOrder } | { do: 'restore'; isForced: boolean }

/**
 * The same walk, but nothing is recorded and so nothing changed: `changed` counts what would be.
 * @param journal what earlier walks have recorded; undefined: nothing
 */
export async function survey(
  inodes: Inodes,
  root: Handle,
  intent: Intent,
  journal: Journal | undefined,
  options: { observer?: Observer; progress?: ProgressListener | undefined },
): Promise<WalkReport> {
  const spec = intent.do === 'own' ? ownSpec(intent.order, journal) : intent
  return walkTree(inodes, root, spec, journal, options, true)
}

/** What a walk that starts now has to know. @param journal of the volume; undefined: it has none */
function ownSpec(order: OwnOrder, journal: Journal | undefined): TaskSpec {
  return {
    do: 'own',
    order,
    firstTime: journal?.isNew() ?? true,
    started: Date.now() - CLOCK_SLACK_MS,
    unfinished: new Set(journal?.unfinished().map(keyOf)),
    hasRestoreBegun: journal?.hasRestoreBegun ?? false,
  }
}

/** A group is given under the last name, when all have been seen inside; a record is put back under the first. */
function namesFor(spec: TaskSpec): HardLinks | FirstNames {
  return spec.do === 'own' ? new HardLinks() : new FirstNames()
}

/** Walks a tree, its root last. @throws {Refusal} {SystemError} what stopped it; what was made is recorded */
async function walkTree(
  inodes: Inodes,
  root: Handle,
  spec: TaskSpec,
  journal: Journal | undefined,
  { progress, pulse, largestBatch, observer, names = namesFor(spec) }: WalkOptions & { observer?: Observer },
  isSurvey = false,
): Promise<WalkReport> {
  const top = inodes.openDirectory(root, SELF)
  using _ = closing(inodes, top)
  // The caller settles and forgets after this walk too, and has the root open until then.
  journal?.syncBy(() => inodes.syncFileSystem(root))
  // A crashed walk's changes must be durable before an inode is recorded as they left it.
  if (!isSurvey && journal?.hasUnfinished) inodes.syncFileSystem(root)
  const stat = inodes.stat(top)
  const shown = new Progress(progress)
  const tell = () => {
    pulse?.()
    shown.tell(walk.report)
  }
  using walk: Walk = new Walk(inodes, spec, new Ledger(journal, names, isSurvey), {
    inside: { mountId: stat.mountId, device: stat.device },
    observer,
    // With `grant` an ACL decides what is added, and with a record what was changed since.
    byName: isSurvey && spec.do === 'own' && spec.firstTime && spec.order.access === 'keep',
    batchSize: batchSize(inodes.handleLimit(), largestBatch),
    onStep: tell,
  })
  let turn = performance.now() + TURN_MS
  for (const _ of traverse(inodes, top, stat, walk)) {
    pulse?.()
    if (performance.now() < turn) continue
    tell()
    await new Promise((resolve) => setImmediate(resolve))
    turn = performance.now() + TURN_MS
  }
  // The root is changed last: a finished walk is told by it.
  walk.makeRoom()
  walk.directory(top, new Uint8Array())
  walk.makeRoom()
  for (const path of names.outside()) walk.left('linked outside the volume', path)
  return walk.report
}
