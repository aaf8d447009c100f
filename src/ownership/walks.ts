import type { Worker } from 'node:worker_threads'
import type { Handle, Inodes } from '../host/host.ts'
import type { OwnOrder } from './inode/policy.ts'
import { keyOf } from './inode/record.ts'
import type { Journal } from './journal/journal.ts'
import { FirstNames, HardLinks, type LinkNames } from './walk/hard-links.ts'
import { JournalLedger, SurveyLedger } from './walk/ledger.ts'
import type { ProgressListener } from './walk/progress.ts'
import type { WalkReport } from './walk/report.ts'
import type { TaskSpec } from './walk/walk.ts'
import { type Others, type TreeOptions, walkTree } from './walk/walk-tree.ts'
import type { WorkerData } from './workers/messages.ts'

/** What a walk may use beside the thread it is called in. */
export interface WalkOptions {
  /** Threads for a large tree: how many, and how one is started that runs `runWorker`. */
  workerPool?: { size: number; spawn(data: WorkerData): Worker; from?: number }
  progress?: ProgressListener
}

/** Inodes. */
const WORKERS_FROM = 4000

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
  return walkAndChange(inodes, root, ownSpec(order, journal), journal, options)
}

/**
 * Puts every recorded inode of a tree back to what it was: group, mode, set-id bits, ACL, capability. What somebody
 * changed since is left. Only what was put back is forgotten: an inode that was not met may be met another time.
 * May be repeated and may be killed.
 * In the report `changed` counts what was put back, `alreadyRight` what already was as recorded.
 * @param isForced also what somebody changed since is put back, where it is surely the inode that was recorded
 * @throws as `own` does
 */
export async function restore(
  inodes: Inodes,
  root: Handle,
  journal: Journal,
  options: WalkOptions = {},
  isForced = false,
): Promise<WalkReport> {
  const report = await walkAndChange(inodes, root, { do: 'restore', isForced }, journal, options)
  journal.checkRest()
  return report
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
  options: Pick<TreeOptions, 'observer' | 'progress'>,
): Promise<WalkReport> {
  const spec = intent.do === 'own' ? ownSpec(intent.order, journal) : intent
  return walkTree(inodes, root, spec, new SurveyLedger(journal, namesFor(spec)), options)
}

async function walkAndChange(
  inodes: Inodes,
  root: Handle,
  spec: TaskSpec,
  journal: Journal,
  { workerPool, progress }: WalkOptions,
): Promise<WalkReport> {
  const ledger = new JournalLedger(journal, namesFor(spec))
  const others: Others | undefined = workerPool && {
    from: workerPool.from ?? WORKERS_FROM,
    async walk(part, inside, watch) {
      const { WorkerPool } = await import('./workers/pool.ts')
      return new WorkerPool({ ...workerPool, inodes, spec, inside, first: part, journal, ledger, watch }).run()
    },
  }
  const report = await walkTree(inodes, root, spec, ledger, { progress, others })
  journal.confirm()
  return report
}

/** What a walk that starts now has to know. @param journal of the volume; undefined: it has none */
function ownSpec(order: OwnOrder, journal: Journal | undefined): TaskSpec {
  return {
    do: 'own',
    order,
    firstTime: journal?.isEmpty() ?? true,
    started: Date.now() - CLOCK_SLACK_MS,
    unfinished: new Set(journal?.unfinished().map(keyOf)),
  }
}

/** A group is given under the last name, when all have been seen inside; a record is put back under the first. */
function namesFor(spec: TaskSpec): LinkNames {
  return spec.do === 'own' ? new HardLinks() : new FirstNames()
}
