const UID = /[0-9a-f]{8}(?:[-_][0-9a-f]{4}){3}[-_][0-9a-f]{12}/.source

/**
 * The uid of the pod that a process is in, from its /proc/PID/cgroup: kubelet names a pod's cgroup `pod<uid>`, with
 * underscores where systemd makes it (kubernetes pkg/kubelet/cm/pod_container_manager_linux.go).
 */
export function parseCgroupPodUid(text: string): string | undefined {
  const uid = new RegExp(`pod(${UID})`).exec(text)?.[1]
  return uid?.replaceAll('_', '-')
}

/**
 * The pods of which a mount namespace has something outside of kubelet's directory: a container's /etc/hosts, its
 * termination log, its volumes (kubernetes pkg/kubelet/kubelet_pods.go, makeMounts).
 * @param table its /proc/PID/mountinfo
 */
export function parseMountPodUids(table: string): string[] {
  return table.split('\n').flatMap((row) => {
    const [, , , root = '', mountPoint = ''] = row.split(' ')
    const uid = new RegExp(`/pods/(${UID})/`).exec(root)?.[1]
    return uid === undefined || mountPoint.includes(`/pods/${uid}/`) ? [] : [uid]
  })
}
