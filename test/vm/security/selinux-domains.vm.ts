import * as fs from 'node:fs'
import { beforeAll, describe, expect, it } from 'vitest'
import { ON_DISK } from '../../helpers/disks.ts'
import { addSkipReason } from '../../helpers/needs.ts'
import { mountPod, POD_GROUP, run, SUCCESS } from '../cases/node.ts'
import { LabelledNode, unmountDisksAfterEach } from './labelled-node.ts'
import { readTreeState } from './labelled-tree.ts'
import {
  allowUntilEnd,
  createContext,
  enforcePolicy,
  explainMissingSelinux,
  type LoggedAccess,
  takeLoggedAccesses,
} from './selinux.ts'

const missing = explainMissingSelinux()
const RESTORE = { restoreOnUnmount: 'true' }
/** What containers may read and write. */
const TYPES = ['container_file_t', 'container_ro_file_t']

unmountDisksAfterEach()

const createDenial = (domain: string, access: string): LoggedAccess => ({ verdict: 'denied', domain, access })

/** A walk with `restoreOnUnmount`, the repeated call, and the unmount. Every inode must be as before. */
async function walkAndRestore(node: LabelledNode, tree: string): Promise<void> {
  const before = readTreeState(tree)
  for (const call of ['first', 'repeated'])
    expect([call, await mountPod(node, tree, 'walk', RESTORE)]).toEqual([call, SUCCESS])
  expect(fs.statSync(`${node.podDirectory('a')}/d0/f0`).gid).toBe(POD_GROUP)
  expect(await node.call('unmount', node.podDirectory('a'))).toEqual(SUCCESS)
  expect(readTreeState(tree)).toEqual(before)
}

describe.skipIf(missing !== '')(addSkipReason('a domain that the SELinux policy confines', missing), () => {
  beforeAll(enforcePolicy)

  it('kubelet_t may not start modekeep: the reply names a policy, and unconfined_t may', async () => {
    const node = new LabelledNode('kubelet_t')
    await takeLoggedAccesses()
    expect(await node.call('init')).toEqual({
      status: 'Failure',
      message: 'modekeep: cannot start: a security policy of this host forbids to run code from a memory file (EACCES)',
    })
    expect(await takeLoggedAccesses()).toEqual([createDenial('kubelet_t', 'file { map } kubernetes_tmpfs_t')])
    node.enter('unconfined_t')
    expect(await node.call('init')).toMatchObject(SUCCESS)
  })

  it('kubelet_t that may start modekeep may not mount: nothing is changed, and unconfined_t mounts', async () => {
    allowUntilEnd('modekeep_start')
    const node = new LabelledNode('kubelet_t')
    const tree = node.mountDisk('ext4', { types: TYPES })
    const before = readTreeState(tree)
    await takeLoggedAccesses()
    expect(await mountPod(node, tree, 'walk', RESTORE)).toEqual({
      status: 'Failure',
      message: expect.stringContaining('EPERM'),
    })
    expect(await takeLoggedAccesses()).toContainEqual(createDenial('kubelet_t', 'capability { sys_admin } kubelet_t'))
    expect([readTreeState(tree), node.mountState(), node.layers('a')]).toEqual([before, [], []])
    node.enter('unconfined_t')
    await walkAndRestore(node, tree)
  })

  it("kubelet_t with the lab's rules walks and restores a volume of containers", async () => {
    allowUntilEnd('modekeep_start', 'modekeep_mount')
    const node = new LabelledNode('kubelet_t')
    await walkAndRestore(node, node.mountDisk('ext4', { types: ['container_file_t'] }))
  })

  it("kubelet_t with the lab's rules may make no user namespace: idmap is refused, and auto walks", async () => {
    allowUntilEnd('modekeep_start', 'modekeep_mount')
    const node = new LabelledNode('kubelet_t')
    const tree = node.mountDisk('ext4', { types: ['container_file_t'] })
    await takeLoggedAccesses()
    expect(await mountPod(node, tree, 'idmap')).toEqual({
      status: 'Failure',
      message: expect.stringContaining(
        'modekeep may make no user namespace on this node (clone a user namespace: EACCES)',
      ),
    })
    expect(await takeLoggedAccesses()).toContainEqual(createDenial('kubelet_t', 'user_namespace { create } kubelet_t'))
    node.enter('unconfined_t')
    expect(await mountPod(node, tree, 'idmap')).toEqual(SUCCESS)
    expect(await node.call('unmount', node.podDirectory('a'))).toEqual(SUCCESS)
    node.enter('kubelet_t')
    expect(await mountPod(node, tree, 'auto')).toMatchObject(SUCCESS)
    expect(fs.statSync(`${tree}/d0/f0`).gid).toBe(POD_GROUP)
    expect(await node.call('unmount', node.podDirectory('a'))).toEqual(SUCCESS)
  })

  it.each(['ext4', 'xfs'] as const)(
    'container_engine_t walks, maps, heals and restores a volume of containers on %s',
    async (fsType) => {
      const node = new LabelledNode('container_engine_t')
      const tree = node.mountDisk(fsType, { types: TYPES })
      await walkAndRestore(node, tree)
      const before = readTreeState(tree)
      expect(await mountPod(node, tree, 'idmap')).toEqual(SUCCESS)
      run('umount', node.podDirectory('a'))
      expect(await node.start(['heal']).ended).toMatchObject({ code: 0 })
      expect(fs.statSync(`${node.podDirectory('a')}/d0/f0`).gid).toBe(POD_GROUP)
      expect(await node.call('unmount', node.podDirectory('a'))).toEqual(SUCCESS)
      expect(readTreeState(tree)).toEqual(before)
    },
  )

  it.each([
    ['inspect', 'shadow_t', 'getattr'],
    ['change', 'etc_t', 'setattr'],
  ])(
    'a walk with a file that container_engine_t may not %s is refused, and the next call in unconfined_t finishes it',
    async (_, type, permission) => {
      const node = new LabelledNode('container_engine_t')
      const tree = node.mountDisk('ext4', { types: TYPES })
      run('chcon', createContext(type), `${tree}/d2/f22`)
      const before = readTreeState(tree)
      await takeLoggedAccesses()
      expect(await mountPod(node, tree, 'walk', RESTORE)).toEqual({
        status: 'Failure',
        message: expect.stringMatching(/^an access to the volume was denied .*EACCES.*SELinux.*audit log/),
      })
      const denial = createDenial('container_engine_t', `file { ${permission} } ${type}`)
      expect(await takeLoggedAccesses()).toContainEqual(denial)
      expect([readTreeState(tree).otherAttributes, node.layers('a')]).toEqual([before.otherAttributes, []])
      node.enter('unconfined_t')
      expect(await mountPod(node, tree, 'walk', RESTORE)).toEqual(SUCCESS)
      expect(fs.statSync(`${tree}/d2/f22`).gid).toBe(POD_GROUP)
      expect(await node.call('unmount', node.podDirectory('a'))).toEqual(SUCCESS)
      expect(readTreeState(tree)).toEqual(before)
    },
  )

  it('a restore that container_engine_t may not finish stays pending, and "restore" in unconfined_t finishes it', async () => {
    const node = new LabelledNode('container_engine_t')
    const tree = node.mountDisk('ext4', { types: TYPES })
    expect(await mountPod(node, tree, 'walk', RESTORE)).toEqual(SUCCESS)
    run('chcon', createContext('etc_t'), `${tree}/d2/f22`)
    const denied = createDenial('container_engine_t', 'file { setattr } etc_t')
    await takeLoggedAccesses()
    expect(await node.call('unmount', node.podDirectory('a'))).toEqual(SUCCESS)
    expect(await takeLoggedAccesses()).toContainEqual(denied)
    expect(fs.statSync(`${tree}/d2/f22`).gid).toBe(POD_GROUP)
    const { text } = await node.start(['status']).ended
    expect(text).toContain('puts the volume back, which its last unmount could not')
    node.enter('unconfined_t')
    expect(await node.start(['restore', tree]).ended).toMatchObject({ code: 0 })
    const { groups } = readTreeState(tree)
    expect([...new Set(Object.values(groups))].sort()).toEqual([0, ON_DISK])
  })

  it('a mounted volume whose root container_engine_t may not inspect stays mounted, and unconfined_t unmounts it', async () => {
    const node = new LabelledNode('container_engine_t')
    const tree = node.mountDisk('ext4', { types: TYPES })
    expect(await mountPod(node, tree, 'walk', RESTORE)).toEqual(SUCCESS)
    run('chcon', createContext('shadow_t'), tree)
    const layers = node.layers('a')
    await takeLoggedAccesses()
    expect(await mountPod(node, tree, 'walk', RESTORE)).toEqual({
      status: 'Failure',
      message: expect.stringMatching(/EACCES; if SELinux or AppArmor denied it, the audit log of the node says so/),
    })
    expect(await takeLoggedAccesses()).toContainEqual(createDenial('container_engine_t', 'dir { getattr } shadow_t'))
    expect(await node.start(['heal']).ended).toMatchObject({ code: 1, text: expect.stringContaining('EACCES') })
    expect(node.layers('a')).toEqual(layers)
    node.enter('unconfined_t')
    expect(await node.call('unmount', node.podDirectory('a'))).toEqual(SUCCESS)
    expect(fs.statSync(`${tree}/d0/f0`).gid).toBe(ON_DISK)
  })
})
