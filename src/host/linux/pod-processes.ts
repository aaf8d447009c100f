import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { tolerateSystemErrors } from '../file-error.ts'

/**
 * Returns the uids of pods with a visible process. A process belongs to a pod by kubelet's cgroup of the pod, or by
 * mounts from kubelet's directory of the pod. Not every runtime and configuration uses such a cgroup.
 */
export function listRunningPods(): ReadonlySet<string> {
  const pods = new Set<string>()
  const namespaces = new Set<string>()
  for (const pid of listPids()) {
    const read = (file: string) => tolerateSystemErrors(() => readFileSync(`/proc/${pid}/${file}`, 'utf8')) ?? ''
    const pod = parseCgroupPodUid(read('cgroup'))
    if (pod !== undefined) pods.add(pod)
    const namespace = tolerateSystemErrors(() => readlinkSync(`/proc/${pid}/ns/mnt`))
    if (namespace === undefined || namespaces.has(namespace)) continue
    const table = read('mountinfo')
    // An ending process has no mount table, but others of its namespace may have one.
    if (table !== '') namespaces.add(namespace)
    for (const uid of parseMountPodUids(table)) pods.add(uid)
  }
  return pods
}

/** The node's own pid namespace: include/linux/proc_ns.h, PROC_PID_INIT_INO. */
const NODE_PID_NAMESPACE = 'pid:[4026531836]'

/**
 * Reads the cgroups of all processes. A runtime names a container's cgroup after it (runc's `cri-containerd-ID.scope`
 * or `/ID`, CRI-O's `crio-ID.scope`).
 * @returns a check for processes of a container; always true if not all of the node's processes are visible
 */
export function snapshotProcesses(): (container: string) => boolean {
  if (tolerateSystemErrors(() => readlinkSync('/proc/self/ns/pid')) !== NODE_PID_NAMESPACE) return () => true
  const cgroups = new Set(
    listPids().map((pid) => tolerateSystemErrors(() => readFileSync(`/proc/${pid}/cgroup`, 'utf8'))),
  )
  const text = [...cgroups].join('\n')
  return (container) => text.includes(container)
}

function listPids(): string[] {
  return readdirSync('/proc').filter((name) => /^\d+$/.test(name))
}

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
