import { findPodDirectory, hasUserNamespace } from '../../mount-table/kubelet-volume.ts'
import { parseMountFlags } from '../../mount-table/mount-flags.ts'
import { formatRestrictions } from '../../mount-table/mount-restrictions.ts'
import type { MountRecord } from '../../store/mount-record.ts'
import type { Session } from '../../store/session.ts'

/** Options that protect the node or the volume. A missing `noatime` only costs time. */
const PROTECTING: readonly string[] = ['ro', 'nosuid', 'nodev', 'noexec', 'nosymfollow']

/**
 * Finds the mount options that the containers of a recorded mount may lack. runc 1.2 and newer clears them, unless
 * "modekeep nri" passes them to the runtime, or the kernel locks them because the pod has a user namespace.
 * @param isGivenByPlugin "modekeep nri" runs and is registered with the runtime
 */
export function findUnenforcedOptions(
  { host }: Pick<Session, 'host'>,
  { directory, request }: MountRecord,
  isGivenByPlugin: boolean,
): string[] {
  if (isGivenByPlugin || findPodDirectory(directory) === undefined) return []
  // Kubelet itself makes a read-only volume read-only in the runtime's request.
  const { set } = parseMountFlags(request.mountOptions, false)
  const isSetByKubelet = (option: string) => option === 'ro' && request.readOnly
  const options = formatRestrictions(set).filter((option) => PROTECTING.includes(option) && !isSetByKubelet(option))
  return options.length === 0 || hasUserNamespace(host, directory) ? [] : options
}
