import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { unlessRefused } from '../file-error.ts'
import { podOfCgroup, podsOfMounts } from '../pods.ts'

/**
 * The uids of the pods of which a process is seen: by the cgroup that kubelet made for the pod, or by what its container
 * has of kubelet's directory of the pod, as not every runtime and configuration puts its processes into such a cgroup.
 */
export function runningPods(): ReadonlySet<string> {
  const pods = new Set<string>()
  const namespaces = new Set<string>()
  for (const pid of processes()) {
    const read = (file: string) => unlessRefused(() => readFileSync(`/proc/${pid}/${file}`, 'utf8')) ?? ''
    const pod = podOfCgroup(read('cgroup'))
    if (pod !== undefined) pods.add(pod)
    const namespace = unlessRefused(() => readlinkSync(`/proc/${pid}/ns/mnt`))
    if (namespace === undefined || namespaces.has(namespace)) continue
    const table = read('mountinfo')
    // One that is just ending has none any more, and others may be there.
    if (table !== '') namespaces.add(namespace)
    for (const uid of podsOfMounts(table)) pods.add(uid)
  }
  return pods
}

/** Of the node's own namespace of processes: include/linux/proc_ns.h, PROC_PID_INIT_INO. */
const OF_NODE = 'pid:[4026531836]'

/**
 * Looks at all processes: a runtime names a container's cgroup after it (runc's `cri-containerd-ID.scope` or `/ID`, CRI-O's
 * `crio-ID.scope`).
 * @returns whether a container has processes; true where not all processes of the node are seen
 */
export function processesNow(): (container: string) => boolean {
  if (unlessRefused(() => readlinkSync('/proc/self/ns/pid')) !== OF_NODE) return () => true
  const cgroups = new Set(processes().map((pid) => unlessRefused(() => readFileSync(`/proc/${pid}/cgroup`, 'utf8'))))
  const text = [...cgroups].join('\n')
  return (container) => text.includes(container)
}

function processes(): string[] {
  return readdirSync('/proc').filter((name) => /^\d+$/.test(name))
}
