const UID = /[0-9a-f]{8}(?:[-_][0-9a-f]{4}){3}[-_][0-9a-f]{12}/.source

/**
 * Returns the uid of a process's pod from its /proc/PID/cgroup. Kubelet names the pod's cgroup `pod<uid>`, with
 * underscores if systemd creates it (kubernetes pkg/kubelet/cm/pod_container_manager_linux.go).
 */
export function parseCgroupPodUid(text: string): string | undefined {
  const uid = new RegExp(`pod(${UID})`).exec(text)?.[1]
  return uid?.replaceAll('_', '-')
}

/**
 * Returns the pods whose files a mount namespace has outside of kubelet's directory: /etc/hosts, termination logs and
 * volumes of containers (kubernetes pkg/kubelet/kubelet_pods.go, makeMounts).
 * @param table the namespace's /proc/PID/mountinfo
 */
export function parseMountPodUids(table: string): string[] {
  return table.split('\n').flatMap((row) => {
    const [, , , root = '', mountPoint = ''] = row.split(' ')
    const uid = new RegExp(`/pods/(${UID})/`).exec(root)?.[1]
    return uid === undefined || mountPoint.includes(`/pods/${uid}/`) ? [] : [uid]
  })
}
