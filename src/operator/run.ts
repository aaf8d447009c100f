import { applyByHand, openByHand, type VolumeByHand } from '../apply/by-hand.ts'
import { refuseOtherNamespace } from '../apply/namespace.ts'
import { restoreByHand } from '../apply/restore-by-hand.ts'
import type { Session } from '../apply/session.ts'
import { mountFlags } from '../mount-table/flags.ts'
import { newReport, type WalkReport } from '../ownership/report.ts'
import type { Work } from './command.ts'
import type { Document } from './document.ts'
import { heal } from './heal.ts'
import { plan } from './plan.ts'
import { status } from './status.ts'

/**
 * Does what an operator's command says.
 * @throws {Refusal} with a sentence for the operator; any other error is the system's
 */
export async function run(session: Session, command: Work): Promise<Document> {
  if (command.verb !== 'plan' && command.verb !== 'heal') refuseOtherNamespace(session)
  switch (command.verb) {
    case 'status':
      return status(session)
    case 'heal':
      return heal(session, command)
    case 'plan':
      return plan(session, command.directory, command.order)
    case 'apply': {
      const { verb, directory } = command
      const { volume, report } = await walked(session, directory, (listening, opened) =>
        applyByHand(listening, opened, command.order),
      )
      const { group, access: groupAccess, policy } = command.order
      const asked = { directory, volume, group, groupAccess, policy }
      return { verb, ...asked, walked: report !== undefined, report: report ?? newReport() }
    }
    case 'restore': {
      const { verb, directory } = command
      const { volume, report, result } = await walked(session, directory, restoreByHand)
      return { verb, directory, volume, outcome: result, report: report ?? newReport() }
    }
  }
}

/** What the log is told of a walk is what the operator is told. */
async function walked<T>(
  session: Session,
  directory: string,
  work: (listening: Session, opened: VolumeByHand) => Promise<T>,
): Promise<{ volume: string; result: T; report: WalkReport | undefined }> {
  const noted: { inodes?: WalkReport } = {}
  const listening: Session = {
    ...session,
    note(facts) {
      Object.assign(noted, facts)
      session.note(facts)
    },
  }
  const opened = openByHand(session, directory, mountFlags([], false))
  try {
    const result = await work(listening, opened)
    return { volume: opened.volume, result, report: noted.inodes }
  } finally {
    session.host.inodes.close(opened.tree)
  }
}
