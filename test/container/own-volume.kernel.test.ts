import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { describe, expect, it } from 'vitest'
import { parseFlexVolumeRequest } from '../../src/config/request.ts'
import { attachContainerClones } from '../../src/container/attach-clones.ts'
import { reconcileContainers, releaseContainerClones } from '../../src/container/container-task.ts'
import { mountPodVolume } from '../../src/mount/mount.ts'
import { unmountPodVolume } from '../../src/mount/unmount.ts'
import { volumeKindLookup } from '../../src/volume/index.ts'
import { cannotMount } from '../real-mounts/mapped-volume.ts'
import { CONTAINER, nodeWith, UID } from './node.ts'
import { bound, inPod, writeIds } from './pod-namespace.ts'

/** A node whose pod has a volume of modekeep's that shows group 500 on disk as 2000. */
async function ownVolume(kind: string, more: Record<string, string> = {}) {
  const node = nodeWith(kind === 'disk' ? 'ext4' : 'tmpfs')
  const { session, top, pod } = node
  const directory = `${pod}/volumes/modekeep~fs/v`
  fs.mkdirSync(directory, { recursive: true })
  fs.mkdirSync(`${node.volume}/sub`)
  fs.chownSync(`${node.volume}/sub`, 0, 500)
  fs.chmodSync(`${node.volume}/sub`, 0o2770)
  let source = node.volume
  let fsType = 'bind'
  if (kind === 'disk') {
    // The volume's own directory is what the image shows.
    execFileSync('umount', [node.source])
    fs.renameSync(`${node.volume}/file`, `${top}/fs/file`)
    fs.renameSync(`${node.volume}/sub`, `${top}/fs/sub`)
    fs.chownSync(`${top}/fs`, 0, 500)
    fs.chmodSync(`${top}/fs`, 0o2770)
    execFileSync('umount', [`${top}/fs`])
    source = `${top}/image`
    fsType = 'ext4'
  }
  const config = { ...session.config, allow: [{ sources: [source], fsTypes: [fsType], systemGroups: true }] }
  const options = {
    source,
    'kubernetes.io/fsType': fsType,
    ownership: 'idmap',
    'kubernetes.io/fsGroup': '2000',
    'kubernetes.io/pod.uid': UID,
    ...more,
  }
  const own = { ...session, config }
  await mountPodVolume(own, parseFlexVolumeRequest(directory, JSON.stringify(options), config, volumeKindLookup))
  writeIds(node)
  const clone = (from = directory) =>
    node.clone({ volume: 'v', destination: '/v', source: from, group: undefined, requestedBy: '', isOwn: true })
  const attach = (from?: string) => attachContainerClones(own, node.order([clone(from)], { hasUserNamespace: true }))
  const mountAgain = (at = directory) => {
    const ofPod = { ...options, 'kubernetes.io/pod.uid': UID }
    return mountPodVolume(own, parseFlexVolumeRequest(at, JSON.stringify(ofPod), config, volumeKindLookup))
  }
  return { ...node, own, directory, attach, mountAgain }
}

const CASES = ['bind', 'disk'].map((kind) => [kind, cannotMount(kind === 'disk' ? 'ext4' : 'tmpfs')] as const)

describe.each(CASES)("modekeep's own %s with a mapping, for a pod with a user namespace%s", (kind, why) => {
  it.skipIf(why !== '')('is mounted again from its source and mapped for the pod', async () => {
    const node = await ownVolume(kind)
    expect(fs.statSync(`${node.directory}/file`).gid).toBe(2000)
    const { mounts } = await node.attach()
    const [made] = mounts
    if (made?.do !== 'replace') throw new Error(JSON.stringify(mounts))
    const mine = bound(node, made.source)
    const script = `cat ${mine}/file; echo new > ${mine}/new; stat -c %u:%g ${mine}/new ${mine}/file`
    expect(inPod(2000, script)).toBe('text5:2000\n0:2000')
    expect(inPod(7, `cat ${mine}/file`)).toMatch(/Permission denied/)
    // By the node's own mount: on disk it is group 500.
    expect(fs.statSync(`${node.directory}/new`)).toMatchObject({ uid: 5, gid: 2000 })
    execFileSync('umount', [mine])
    await releaseContainerClones(node.own, CONTAINER, 'gone')
    reconcileContainers(node.own)
    await unmountPodVolume(node.own, node.directory)
    expect(node.mounted()).toEqual([])
  })

  it.skipIf(why !== '')(
    'is mapped in a subPath that kubelet has bound, and refused if another directory replaced it',
    async () => {
      const node = await ownVolume(kind)
      const part = `${node.pod}/volume-subpaths/v/app/0`
      fs.mkdirSync(part, { recursive: true })
      execFileSync('mount', ['--bind', `${node.directory}/sub`, part])
      const { mounts } = await node.attach(part)
      const [made] = mounts
      if (made?.do !== 'replace') throw new Error(JSON.stringify(mounts))
      const mine = bound(node, made.source)
      expect(inPod(2000, `echo new > ${mine}/new; stat -c %u:%g ${mine}/new`)).toBe('5:2000')
      expect(fs.statSync(`${node.directory}/sub/new`)).toMatchObject({ uid: 5, gid: 2000 })
      fs.renameSync(`${node.directory}/sub`, `${node.directory}/moved`)
      fs.mkdirSync(`${node.directory}/sub`)
      execFileSync('umount', [mine])
      await releaseContainerClones(node.own, CONTAINER, 'gone')
      // The kernel tells where it is now.
      expect(await node.attach(part)).toMatchObject({ mounts: [{ do: 'replace' }] })
      await releaseContainerClones(node.own, CONTAINER, 'gone')
      execFileSync('rm', ['-r', `${node.directory}/moved`])
      await expect(node.attach(part)).rejects.toThrow('volume "v" (at "/v") has a subPath that')
      expect(node.records()).toEqual([])
    },
  )
})

const skipped = cannotMount('tmpfs')

describe.skipIf(skipped !== '')(`modekeep's own volume in a pod with a user namespace${skipped}`, () => {
  it('keeps its mount if it is not mapped, so that the runtime maps it', async () => {
    const node = await ownVolume('bind', { ownership: 'walk' })
    expect(await node.attach()).toEqual({ mounts: [{ do: 'keep' }] })
    expect(node.mounted()).toEqual([])
  })

  it('stays mapped without the plugin if the record of an existing container is unreadable', async () => {
    const node = await ownVolume('bind', { ownership: 'auto' })
    await node.attach()
    const record = `${node.top}/state/nri/${CONTAINER}.json`
    fs.writeFileSync(record, '{')
    const root = `${node.top}/run/task/${CONTAINER}/rootfs`
    fs.mkdirSync(root, { recursive: true })
    execFileSync('mount', ['-t', 'tmpfs', 'root', root])
    // The container's pod is unknown, and a walk would be refused for it.
    expect(await node.mountAgain()).toMatchObject({ by: 'idmap', from: 500 })
    expect(fs.statSync(`${node.directory}/file`).gid).toBe(2000)
    const other = `${node.pod}/volumes/modekeep~fs/w`
    fs.mkdirSync(other)
    await expect(node.mountAgain(other)).rejects.toThrow(record)
    execFileSync('umount', [root])
    const { host } = node.own
    node.own.host = { ...host, processesNow: () => () => false }
    await node.mountAgain()
    expect(fs.statSync(`${node.volume}/file`).gid).toBe(2000)
  })

  it('is refused without its mount record', async () => {
    const node = await ownVolume('bind')
    execFileSync('umount', [node.directory])
    execFileSync('mount', ['--bind', node.volume, node.directory])
    await expect(node.attach()).rejects.toThrow("without a record of modekeep's that says how: delete the pod")
  })

  it('is refused if its source was replaced', async () => {
    const node = await ownVolume('bind')
    fs.renameSync(node.volume, `${node.volume}-moved`)
    fs.mkdirSync(node.volume)
    await expect(node.attach()).rejects.toThrow(
      'has another source by now than the one that is mounted: delete the pod',
    )
  })
})
