import { healMounts } from '../../heal/heal.ts'
import { refuseOtherNamespace } from '../../heal/namespace.ts'
import type { Finding } from '../../heal/state.ts'
import { healSubPaths, type SubPathFinding } from '../../heal/sub-paths.ts'
import { errorCode } from '../../host/host.ts'
import { quoted, Refusal } from '../../refusal/refusal.ts'
import type { Session } from '../../store/session.ts'

/** @property kubelet where kubelet keeps its pods, if its own subPath mounts are to be repaired too */
export interface HealCommand {
  verb: 'heal'
  isDry: boolean
  isWatching: boolean
  kubelet: string | undefined
}

export interface HealDocument {
  verb: 'heal'
  isDry: boolean
  /** modekeep's own mounts. */
  mounts: Finding[]
  /** Kubelet's, where asked for. */
  subPaths: SubPathFinding[]
}

function isDirectory({ host }: Session, path: string): boolean {
  try {
    host.inodes.close(host.inodes.openTrusted(path))
    return true
  } catch (error) {
    if (errorCode(error) === undefined) throw error
    return false
  }
}

/** Repairs the mounts on this node, or says what it would do. */
export async function heal(session: Session, { isDry, isWatching, kubelet }: HealCommand): Promise<HealDocument> {
  refuseOtherNamespace(session)
  // A watch may begin before kubelet.
  if (kubelet !== undefined && !isWatching && !isDirectory(session, kubelet)) {
    throw new Refusal(`kubelet's directory ${quoted(kubelet)} does not exist: name it with --kubelet-dir`)
  }
  const mounts = await healMounts(session, isDry)
  const subPaths = kubelet === undefined ? [] : healSubPaths(session, kubelet, { dryRun: isDry })
  session.note({ found: mounts.filter(({ state }) => state !== 'healthy' && state !== 'busy'), subPaths })
  return { verb: 'heal', isDry, mounts, subPaths }
}
