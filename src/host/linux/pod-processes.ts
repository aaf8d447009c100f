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
  for (const pid of readdirSync('/proc')) {
    if (!/^\d+$/.test(pid)) continue
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
