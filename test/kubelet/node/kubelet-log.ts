/** Kubelet quotes an uid in its log; from structured logging on it escapes these quotes within a message. */
const formatUid = (uid: string) => [`(UID: "${uid}")`, `(UID: \\"${uid}\\")`]

/** Returns whether the log has a line about a volume of this pod that matches `words`. */
function hasLine(log: string, words: RegExp, uid: string): boolean {
  const names = formatUid(uid)
  return log.split('\n').some((line) => words.test(line) && names.some((name) => line.includes(name)))
}

/** Returns whether the kubelet has set up a volume of this pod. @param log since the kubelet's last start */
export const hasSetUp = (log: string, uid: string): boolean => hasLine(log, /MountVolume\.SetUp succeeded/, uid)

/**
 * Returns whether the kubelet tried to set up a volume of this pod and failed. Kubelet 1.20 fails before it calls the set-up
 * if the CSI driver's CSIDriver object is deleted; 1.36 fails in the set-up.
 */
export const hasFailedToSetUp = (log: string, uid: string): boolean =>
  hasLine(log, /MountVolume\.(SetUp|NewMounter initialization) failed/, uid)

/** Returns whether the kubelet tried to take down a volume of this pod and failed. */
export const hasFailedToTearDown = (log: string, uid: string): boolean =>
  hasLine(log, /UnmountVolume\.TearDown failed/, uid)

/** Returns whether the kubelet tried to unmount a volume of this pod and found no driver for it. It tries once after its start. */
export const hasMissedDriver = (log: string, uid: string): boolean =>
  hasLine(log, /UnmountVolume\.FindPluginByName failed/, uid)

/** Returns whether the kubelet has compared the mounts on the node with its pods. @param log since its last start */
export const hasReconciled = (log: string): boolean => log.includes('Reconciler: start to sync state')
