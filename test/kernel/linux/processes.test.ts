import { expect, it } from 'vitest'
import { parseCgroupPodUid, parseMountPodUids } from '../../../src/kernel/linux/processes.ts'

const UID = '12345678-9abc-4def-8123-456789abcdef'

it.each([
  ['cgroupfs', `11:pids:/kubepods/burstable/pod${UID}/4f1e\n`],
  ['systemd', `0::/kubepods.slice/kubepods-pod${UID.replaceAll('-', '_')}.slice/cri-containerd-4f1e.scope\n`],
  ['a cgroup namespace', `0::/../../kubepods-besteffort-pod${UID.replaceAll('-', '_')}.slice/x.scope\n`],
])('a process belongs to the pod of its cgroup: %s', (_, text) => {
  expect(parseCgroupPodUid(text)).toBe(UID)
})

it.each(['', '0::/system.slice/kubelet.service\n', '0::/kubepods/pod0123456789abcdef0123456789abcdef/1\n'])(
  'a process with the cgroup file %j belongs to no pod',
  (text) => expect(parseCgroupPodUid(text)).toBeUndefined(),
)

it("a container is recognized by mounts from its pod's directory of kubelet", () => {
  const row = (root: string, at: string) => `100 90 8:1 ${root} ${at} rw - ext4 /dev/sda1 rw`
  const table = [
    row(`/var/lib/kubelet/pods/${UID}/etc-hosts`, '/etc/hosts'),
    // Kubelet's bind of a subPath is a mount of the node itself.
    row(
      '/pods/22222222-9abc-4def-8123-456789abcdef/volumes/x/y',
      '/k/pods/22222222-9abc-4def-8123-456789abcdef/volume-subpaths/y/c/0',
    ),
    row('/srv/volumes', '/var/lib/kubelet/pods/33333333-9abc-4def-8123-456789abcdef/volumes/modekeep~fs/v'),
    '',
  ].join('\n')
  expect(parseMountPodUids(table)).toEqual([UID])
})
