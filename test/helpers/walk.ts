import { surveyOwnership } from '../../src/cli/node-state/survey.ts'
import type { FsGroupRequest } from '../../src/config/mount-request.ts'
import type { Handle } from '../../src/kernel/host.ts'
import { linuxHost } from '../../src/kernel/linux/index.ts'
import { Journal } from '../../src/ownership/journal/journal.ts'
import type { WalkReport } from '../../src/ownership/walk/report.ts'
import type { WalkOptions } from '../../src/ownership/walks.ts'
import { applyGroupToTree, restoreTreeOwnership } from '../../src/ownership/walks.ts'

/** A directory of the node and the journal of its walks: what a mount does to a volume, without the mount. */
export interface Walked {
  directory: string
  /** A file outside the directory. */
  journal: string
  /** The directory is walked where it is, mounts inside it included, instead of through a detached mount of its own. */
  inPlace?: boolean
}

/** Gives a directory to a group, as a call does. */
export function applyToDirectory(
  walked: Walked,
  group: number,
  options?: WalkOptions,
  access: FsGroupRequest['access'] = 'keep',
): Promise<WalkReport> {
  return onTree(walked, (tree, journal) =>
    applyGroupToTree(linuxHost.inodes, tree, { groupId: group, access, changePolicy: 'Always' }, journal, options),
  )
}

/** Puts back what `ownDirectory` changed. */
export function restoreDirectory(walked: Walked, options?: WalkOptions): Promise<WalkReport> {
  return onTree(walked, (tree, journal) => restoreTreeOwnership(linuxHost.inodes, tree, journal, options))
}

/** What an operator's plan counts. */
export function planDirectory(walked: Walked, group: number): Promise<WalkReport> {
  const fsGroup = { groupId: group, access: 'grant', changePolicy: 'Always' } as const
  return onTree(
    walked,
    async (tree, journal) => (await surveyOwnership(linuxHost.inodes, tree, { do: 'apply', fsGroup }, journal)).report,
  )
}

async function onTree<T>(walked: Walked, run: (tree: Handle, journal: Journal) => Promise<T>): Promise<T> {
  const { inodes, mounts } = linuxHost
  const source = inodes.openLinkFree(walked.directory)
  let tree: Handle | undefined
  let journal: Journal | undefined
  try {
    tree = walked.inPlace ? undefined : mounts.cloneTree(source)
    if (tree !== undefined) mounts.setFlags(tree, { set: 0, clear: 0 })
    journal = Journal.open(linuxHost, walked.journal, 'a volume of a test')
    return await run(tree ?? source, journal)
  } finally {
    journal?.close()
    if (tree !== undefined) inodes.close(tree)
    inodes.close(source)
  }
}
