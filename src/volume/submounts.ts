import type { MountRow } from '../mount-table/mountinfo.ts'
import { toPathPrefix } from '../mount-table/tree-location.ts'
import { hasMountRecord } from '../store/mount-record.ts'
import type { Session } from '../store/session.ts'
import { holdsOwnRecords } from './kind/source-path.ts'

/** Kubelet's directories in which kubelet and CSI drivers mount (kubernetes pkg/kubelet/config/defaults.go). */
const KUBELET_MOUNT_DIRECTORIES = ['pods', 'plugins']
const KUBELET_MOUNT =
  /\/pods\/[^/]+\/(volumes|volume-subpaths|volumeDevices|plugins)\/|\/plugins\/kubernetes\.io\/|\/kubelet\/(pods|plugins)\//

/**
 * Whether a mount is kubelet's or modekeep's own, and not the node's. A pod whose source contains such a mount does not need
 * it, and must not see it.
 * @param kubeletDirectory kubelet's root directory; undefined: kubelet's mounts are found by their names alone
 */
export function isInternalMount(
  session: Pick<Session, 'host' | 'config'>,
  { mountPoint }: Pick<MountRow, 'mountPoint'>,
  kubeletDirectory?: string,
): boolean {
  if (KUBELET_MOUNT.test(mountPoint) || isBelowKubelet(mountPoint, kubeletDirectory)) return true
  return holdsOwnRecords(mountPoint, session.config) || hasMountRecord(session, mountPoint)
}

function isBelowKubelet(mountPoint: string, directory: string | undefined): boolean {
  if (directory === undefined) return false
  return KUBELET_MOUNT_DIRECTORIES.some((name) => mountPoint.startsWith(`${toPathPrefix(directory)}/${name}/`))
}
