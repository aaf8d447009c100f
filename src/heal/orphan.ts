/** Traces of a mount's pod in the node's files. */
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

/** Kubelet's pods, and the logs and processes of pods at the same moment. */
export interface KubeletAnswer {
  /** The pods that it has, `namespace/name`. */
  pods: ReadonlySet<string>
  logs: readonly PodLogs[]
  /** The uids of the pods of which a process is seen. */
  running: ReadonlySet<string>
}

/**
 * Whether the pod may have been deleted without an unmount, so that kubelet's list is needed. Kubelet itself unmounts the
 * volumes of every pod that it has seen since its start. It inspects the mounts of earlier pods once, at its start, and
 * forgets those whose driver is not there (pkg/kubelet/volumemanager/reconciler).
 *
 * Kubelet creates a pod's log directory before its first container. It removes that only after it has received all its pods,
 * and this one is not among them (pkg/kubelet/kuberuntime/kuberuntime_gc.go, evictPodLogsDirectories).
 *
 * The pod's directory itself is no evidence. Kubelet keeps it while one volume is mounted (pkg/kubelet/kubelet_volumes.go,
 * cleanupOrphanedPodDirs), and a pod that waits for its first container has a directory with nothing else.
 */
export function mayBeGone({ uid, pod, born, kubeletSince, hasLogs }: PodTrace): boolean {
  // A static pod's uid is a hash, which is the same again when its file is restored.
  if (!isFromServer(uid) || pod === undefined || hasLogs) return false
  return born !== undefined && kubeletSince !== undefined && born < kubeletSince
}

/** Whether the API server chose the uid (pkg/kubelet/config/common.go). */
export function isFromServer(uid: string): boolean {
  return /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(uid)
}

/**
 * Decides by kubelet's answer whether a pod was deleted. A kubelet that has just started, or does not reach the API server,
 * has few pods or none. It must therefore list a pod of the API server that also runs on this node.
 * @returns 'living', 'gone', or the reason why the state is unknown
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
  // A name belongs to one pod at a time, so a later pod of that name proves that this one was deleted.
  const isLater = (other: PodLogs) =>
    other.pod === pod && other.uid !== uid && other.born > born && running.has(other.uid)
  return logs.some(isLater) ? 'gone' : { unknownReason: `kubelet lists a pod ${pod}` }
}
