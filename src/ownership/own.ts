import type { Handle, Inodes } from '../host/host.ts'
import { keyOf } from './inode/open-inode.ts'
import type { OwnOrder } from './inode/policy.ts'
import type { Journal } from './journal/journal.ts'
import { HardLinks } from './walk/hard-links.ts'
import { lastName } from './walk/ledger.ts'
import type { OwnSpec } from './walk/own-task.ts'
import { leave, type WalkReport } from './walk/report.ts'
import { type WalkOptions, walkTree } from './walk-tree.ts'

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
  const links = new HardLinks()
  const spec = ownSpec(order, journal)
  const report = await walkTree(inodes, root, { do: 'own', ...spec }, journal, lastName(links), options)
  for (const path of links.outside()) leave(report, 'linked outside the volume', path)
  return report
}

/** What a walk that starts now has to know. @param journal of the volume; undefined: it has none */
export function ownSpec(order: OwnOrder, journal: Journal | undefined): OwnSpec {
  return {
    order,
    firstTime: journal?.isEmpty() ?? true,
    started: Date.now() - CLOCK_SLACK_MS,
    unfinished: new Set(journal?.unfinished().map(keyOf)),
  }
}
