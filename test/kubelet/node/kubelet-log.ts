/** Kubelet quotes an uid in its log; from structured logging on it escapes these quotes within a message. */
const formatUid = (uid: string) => [`(UID: "${uid}")`, `(UID: \\"${uid}\\")`]

/** Returns whether the kubelet has set up a volume of this pod. @param log since the kubelet's last start */
export function hasSetUp(log: string, uid: string): boolean {
  const names = formatUid(uid)
  return log
    .split('\n')
    .some((line) => line.includes('MountVolume.SetUp succeeded') && names.some((name) => line.includes(name)))
}

/** Returns whether the kubelet has compared the mounts on the node with its pods. @param log since its last start */
export const hasReconciled = (log: string): boolean => log.includes('Reconciler: start to sync state')
