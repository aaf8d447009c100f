import * as fs from 'node:fs'
import { describe, expect, it, onTestFinished } from 'vitest'
import { ON_DISK } from '../../helpers/disks.ts'
import { BinaryNode } from '../../helpers/kubelet-call.ts'
import { makeSource, mountPod, mountUntilEnd, POD_GROUP, run, SUCCESS, walkAndRestore } from './node.ts'

function setSysctl(name: string, value: string): void {
  const file = `/proc/sys/${name.replaceAll('.', '/')}`
  const before = fs.readFileSync(file, 'utf8')
  fs.writeFileSync(file, value)
  onTestFinished(() => fs.writeFileSync(file, before))
}

describe('a hardened node', () => {
  it('without user namespaces, idmap is refused with the sysctl, and auto walks', async () => {
    setSysctl('user.max_user_namespaces', '0')
    const node = new BinaryNode()
    const source = makeSource(node)
    expect(await mountPod(node, source, 'idmap')).toEqual({
      status: 'Failure',
      message: expect.stringContaining('user.max_user_namespaces'),
    })
    expect(await mountPod(node, source, 'auto')).toMatchObject(SUCCESS)
    expect(fs.statSync(`${source}/file`).gid).toBe(POD_GROUP)
    expect(await node.call('unmount', node.podDirectory('a'))).toEqual(SUCCESS)
  })

  it('with /proc mounted hidepid=2, a walk and its restore succeed', async () => {
    mountUntilEnd('-t', 'proc', '-o', 'hidepid=2', 'proc', '/proc')
    const node = new BinaryNode()
    const source = makeSource(node)
    expect(await walkAndRestore(node, source)).toBe(POD_GROUP)
    expect(fs.statSync(`${source}/file`).gid).toBe(ON_DISK)
  })

  it('with /tmp, /run and /dev/shm mounted noexec, a walk and its restore succeed', async () => {
    for (const directory of ['/tmp', '/run', '/dev/shm']) {
      run('mount', '-o', 'remount,noexec', directory)
      onTestFinished(() => {
        run('mount', '-o', 'remount,exec', directory)
      })
    }
    const node = new BinaryNode()
    const source = makeSource(node)
    expect(await walkAndRestore(node, source)).toBe(POD_GROUP)
    expect(fs.statSync(`${source}/file`).gid).toBe(ON_DISK)
  })

  it('with a read-only root file system, a walk and its restore succeed', async () => {
    const node = new BinaryNode()
    const source = makeSource(node)
    run('mount', '-o', 'remount,bind,ro', '/')
    onTestFinished(() => {
      run('mount', '-o', 'remount,bind,rw', '/')
    })
    expect(await walkAndRestore(node, source)).toBe(POD_GROUP)
    expect(fs.statSync(`${source}/file`).gid).toBe(ON_DISK)
  })

  it('with vm.memfd_noexec=2, a walk and its restore succeed', async ({ skip }) => {
    if (!fs.existsSync('/proc/sys/vm/memfd_noexec')) skip('this kernel has no vm.memfd_noexec: use Linux 6.3 or newer')
    setSysctl('vm.memfd_noexec', '2')
    const node = new BinaryNode()
    const source = makeSource(node)
    expect(await walkAndRestore(node, source)).toBe(POD_GROUP)
    expect(fs.statSync(`${source}/file`).gid).toBe(ON_DISK)
  })

  it('in a cgroup v2 with 128 MiB of memory and 32 processes, a walk and its restore succeed', async ({ skip }) => {
    const group = '/sys/fs/cgroup/modekeep-lab'
    if (!fs.existsSync('/sys/fs/cgroup/cgroup.controllers')) skip('this guest has no cgroup v2')
    fs.writeFileSync('/sys/fs/cgroup/cgroup.subtree_control', '+memory +pids')
    fs.mkdirSync(group)
    fs.writeFileSync(`${group}/memory.max`, String(128 << 20))
    fs.writeFileSync(`${group}/pids.max`, '32')
    const node = new BinaryNode()
    onTestFinished(() => fs.rmdirSync(group))
    node.wrapper = ['/bin/sh', '-c', `echo $$ >${group}/cgroup.procs && exec "$@"`, 'sh']
    const source = makeSource(node)
    expect(await walkAndRestore(node, source)).toBe(POD_GROUP)
    expect(fs.statSync(`${source}/file`).gid).toBe(ON_DISK)
  })
})
