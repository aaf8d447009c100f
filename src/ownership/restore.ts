import type { Handle, Inodes } from '../host/host.ts'
import type { Journal } from './journal/journal.ts'
import { firstName } from './walk/ledger.ts'
import type { WalkReport } from './walk/report.ts'
import { type WalkOptions, walkTree } from './walk-tree.ts'

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
  const report = await walkTree(inodes, root, { do: 'restore', isForced }, journal, firstName(), options)
  journal.checkRest()
  return report
}
