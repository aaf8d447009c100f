import { applyByHand, openByHand, orderFor } from '../../fs-group/by-hand.ts'
import { needsWalk } from '../../fs-group/own-volume.ts'
import { refuseOtherNamespace } from '../../heal/namespace.ts'
import { mountFlags } from '../../mount-table/flags.ts'
import { newReport, type WalkReport } from '../../ownership/walk/report.ts'
import type { Session } from '../../store/session.ts'
import type { VolumeCommand, Work } from '../verbs/command.ts'
import { countInodes } from './count.ts'
import type { ApplyDocument, Document } from './document.ts'
import { gc } from './gc.ts'
import { heal } from './heal.ts'
import { plan } from './plan.ts'
import { restore } from './restore.ts'
import { status } from './status.ts'

/** What run does; `doctor` needs more than a session (doctor/). */
export type Task = Exclude<Work, { verb: 'doctor' }>

/**
 * Does what an operator's command says.
 * @throws {Refusal} with a sentence for the operator; any other error is the system's
 */
export async function run(session: Session, command: Task): Promise<Document> {
  if (command.verb !== 'plan' && command.verb !== 'heal') refuseOtherNamespace(session)
  switch (command.verb) {
    case 'status':
      return status(session)
    case 'heal':
      return heal(session, command)
    case 'gc':
      return gc(session, command)
    case 'plan':
      return plan(session, command.directory, command.order)
    case 'apply':
      return apply(session, command)
    case 'restore':
      return restore(session, command)
  }
}

async function apply(
  session: Session,
  { directory, order }: Extract<VolumeCommand, { verb: 'plan' | 'apply' }>,
): Promise<ApplyDocument> {
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
