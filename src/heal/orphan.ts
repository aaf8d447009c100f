/** What the node's files tell of the pod of a mount. */
export interface PodTrace {
  uid: string
  /** `namespace/name`; undefined: kubelet told none. */
  pod: string | undefined
  /** When kubelet made the pod's directory, in milliseconds since 1970; undefined: there is none. */
  born: number | undefined
  /** When the kubelet that runs now began to listen; undefined: none is seen. */
  kubeletSince: number | undefined
  /** The pod has a directory of logs. */
  hasLogs: boolean
}

/** A pod's directory of logs. */
export interface PodLogs {
  /** `namespace/name` */
  pod: string
  uid: string
  /** When it was made, in milliseconds since 1970. */
  born: number
}

/** What kubelet says, and what goes with that, at one moment. */
export interface KubeletAnswer {
  /** The pods that it has, `namespace/name`. */
  pods: ReadonlySet<string>
  logs: readonly PodLogs[]
  /** The uids of the pods of which a process is seen. */
  running: ReadonlySet<string>
}

/**
 * Whether it pays to ask. A pod that this kubelet has met keeps nothing that kubelet would not unmount by itself: only at its
 * start it looks at the mounts of former pods, once, and forgets those whose driver is not there (pkg/kubelet/volumemanager/
 * reconciler). It makes a pod's directory of logs before its first container, and removes it only when it has heard of all
 * its pods and this one is none of them (pkg/kubelet/kuberuntime/kuberuntime_gc.go, evictPodLogsDirectories).
 *
 * The pod's directory itself says nothing: kubelet removes none of it as long as one volume is mounted (pkg/kubelet/
 * kubelet_volumes.go, cleanupOrphanedPodDirs), and a pod that waits for its first container has a directory with nothing else.
 */
export function mayBeGone({ uid, pod, born, kubeletSince, hasLogs }: PodTrace): boolean {
  // A pod of a file has a hash in its place, and the same one when its file comes back.
  if (!isFromServer(uid) || pod === undefined || hasLogs) return false
  return born !== undefined && kubeletSince !== undefined && born < kubeletSince
}

/** Whether the API server chose it (pkg/kubelet/config/common.go). */
export function isFromServer(uid: string): boolean {
  return /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(uid)
}

/**
 * Whether a pod that may be gone is, for what kubelet says. A kubelet that has just started, or does not reach the API
 * server, has few pods or none: so it must list one of the server's, which must also be seen to run here.
 * @returns 'living', 'gone', or why that cannot be told
 */
export function decidePodFate(
  trace: PodTrace,
  { pods, logs, running }: KubeletAnswer,
): 'living' | 'gone' | { unknownReason: string } {
  const { uid, pod = '', born = 0 } = trace
  if (running.has(uid)) return 'living'
  const isKnown = ({ pod, uid }: PodLogs) => pods.has(pod) && isFromServer(uid) && running.has(uid)
  if (!logs.some(isKnown)) {
    return {
      unknownReason: 'kubelet lists no running pod of the API server, so it may not know yet which pods there are',
    }
  }
  if (!pods.has(pod)) return 'gone'
  // A name is one pod's at a time: what has it now was made after this one was deleted.
  const isLater = (other: PodLogs) =>
    other.pod === pod && other.uid !== uid && other.born > born && running.has(other.uid)
  return logs.some(isLater) ? 'gone' : { unknownReason: `kubelet lists a pod ${pod}` }
}
