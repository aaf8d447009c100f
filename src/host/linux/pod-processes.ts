import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { tolerateSystemErrors } from '../file-error.ts'
import { parseCgroupPodUid, parseMountPodUids } from '../pods.ts'

/**
 * The uids of the pods of which a process is seen: by the cgroup that kubelet made for the pod, or by what its container
 * has of kubelet's directory of the pod, as not every runtime and configuration puts its processes into such a cgroup.
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
    // One that is just ending has none any more, and others may be there.
    if (table !== '') namespaces.add(namespace)
    for (const uid of parseMountPodUids(table)) pods.add(uid)
  }
  return pods
}

/** Of the node's own namespace of processes: include/linux/proc_ns.h, PROC_PID_INIT_INO. */
const NODE_PID_NAMESPACE = 'pid:[4026531836]'

/**
 * Looks at all processes: a runtime names a container's cgroup after it (runc's `cri-containerd-ID.scope` or `/ID`, CRI-O's
 * `crio-ID.scope`).
 * @returns whether a container has processes; true where not all processes of the node are seen
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
