import { healMounts } from '../apply/heal.ts'
import { healSubPaths } from '../apply/heal-sub-paths.ts'
import { refuseOtherNamespace } from '../apply/namespace.ts'
import type { Session } from '../apply/session.ts'
import type { NodeCommand } from './command.ts'
import type { HealDocument } from './document.ts'

/** Mends what went wrong with mounts on this node, or says what it would mend. */
export async function heal(
  session: Session,
  { isDry, kubelet }: Extract<NodeCommand, { verb: 'heal' }>,
): Promise<HealDocument> {
  refuseOtherNamespace(session)
  const mounts = await healMounts(session, isDry)
  const subPaths = kubelet === undefined ? [] : healSubPaths(session, kubelet, { dryRun: isDry })
  return { verb: 'heal', isDry, mounts, subPaths }
}
