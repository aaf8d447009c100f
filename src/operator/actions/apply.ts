import { applyByHand, type ByHandOrder, openByHand, orderFor } from '../../fs-group/by-hand.ts'
import { needsWalk } from '../../fs-group/own-volume.ts'
import { mountFlags } from '../../mount-table/flags.ts'
import { newReport, type WalkReport } from '../../ownership/walk/report.ts'
import type { Session } from '../../store/session.ts'
import { countInodes } from './count.ts'
import type { Asked } from './document.ts'

export interface ApplyCommand {
  verb: 'apply'
  directory: string
  order: ByHandOrder
}

export interface ApplyDocument extends Asked {
  verb: 'apply'
  /** False: the root has the group already and the policy is OnRootMismatch. */
  walked: boolean
  report: WalkReport
}

/** Gives a directory to a group, as a pod's mount does. */
export async function apply(session: Session, { directory, order }: ApplyCommand): Promise<ApplyDocument> {
  const { group, access: groupAccess, policy } = order
  const opened = openByHand(session, directory, mountFlags([], false))
  let report: WalkReport | undefined
  try {
    if (session.expect && needsWalk(session, opened.tree, orderFor(opened, order))) {
      session.expect(await countInodes(session.host.inodes, opened.tree))
    }
    report = await applyByHand(session, opened, order)
  } finally {
    session.host.inodes.close(opened.tree)
  }
  const asked = { directory, volume: opened.volume, group, groupAccess, policy }
  return { verb: 'apply', ...asked, walked: report !== undefined, report: report ?? newReport() }
}
