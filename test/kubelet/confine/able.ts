import { spawnSync } from 'node:child_process'
import * as fs from 'node:fs'
import type { Hierarchy } from './cgroups.ts'

/**
 * What keeps this machine from running a kubelet, each in a sentence that says what to do about it. A test that were
 * passed over silently would be taken for one that was passed.
 */
export function obstacles(hierarchies: readonly Hierarchy[]): string[] {
  if (process.getuid?.() !== 0) return ['it needs root: run it with sudo']
  if (process.arch !== 'x64' || !fs.existsSync('/etc/debian_version')) {
    return ['it needs Debian 12 on amd64: the kubelet is built from its source, for it alone']
  }
  const found: string[] = []
  if (hierarchies.length === 0) {
    found.push(
      "no control groups are mounted below /sys/fs/cgroup: mount cgroup2 there, or give a container the host's",
    )
  }
  for (const { mountPoint, group } of hierarchies) {
    const refusal = cannotMake(group)
    if (refusal) {
      found.push(
        `no control group can be made in ${mountPoint} (${refusal}): mount it writable, as in a privileged container`,
      )
    }
  }
  if (spawnSync('unshare', ['--mount', '--pid', '--fork', '--net', '--ipc', '--cgroup', 'true']).status !== 0) {
    found.push('no namespaces can be made (unshare failed): give it CAP_SYS_ADMIN, as in a privileged container')
  }
  if (!fs.existsSync('/dev/loop-control')) found.push('there is no /dev/loop-control: load the kernel module loop')
  if (!isFileSystem('overlay')) found.push('this kernel has no overlay file system: load the kernel module overlay')
  return found
}

/** Tries with a group beside the run's own, which another run may be using. */
function cannotMake(group: string): string {
  const probe = `${group}-probe-${process.pid}`
  try {
    fs.mkdirSync(probe)
    fs.rmdirSync(probe)
    return ''
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? String(error)
  }
}

function isFileSystem(name: string): boolean {
  const isKnown = () => fs.readFileSync('/proc/filesystems', 'utf8').split('\n').includes(`nodev\t${name}`)
  if (!isKnown()) spawnSync('modprobe', [name])
  return isKnown()
}
