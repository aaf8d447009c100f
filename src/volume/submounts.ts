import type { MountRow } from '../mount-table/mountinfo.ts'
import { toPathPrefix } from '../mount-table/tree-location.ts'
import { hasMountRecord } from '../store/mount-record.ts'
import type { Session } from '../store/session.ts'
import { holdsOwnRecords } from './kind/source-path.ts'

/** Directories of kubelet in which it mounts, and CSI drivers do (kubernetes pkg/kubelet/config/defaults.go). */
const KUBELET_MOUNT_DIRECTORIES = ['pods', 'plugins']
const KUBELET_MOUNT =
  /\/pods\/[^/]+\/(volumes|volume-subpaths|volumeDevices|plugins)\/|\/plugins\/kubernetes\.io\/|\/kubelet\/(pods|plugins)\//

/**
 * Tells kubelet's mounts and modekeep's own from the node's: a pod whose source holds those does not miss them, and must
 * not see them.
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
