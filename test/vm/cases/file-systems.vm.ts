import * as fs from 'node:fs'
import { afterEach, describe, expect, it } from 'vitest'
import type { DoctorDocument } from '../../../src/cli/commands/doctor.ts'
import { attachDisk, type DiskType, detachDisks, makeImage, ON_DISK } from '../../helpers/disks.ts'
import { BINARY, BinaryNode } from '../../helpers/kubelet-call.ts'
import { mountPod, POD_GROUP, run, SUCCESS } from './node.ts'

const FS_TYPES = ['ext4', 'xfs', 'btrfs', 'squashfs', 'tmpfs', 'overlayfs'] as const

const mounted: string[] = []
afterEach(() => {
  for (const directory of mounted.splice(0).reverse()) run('umount', directory)
  detachDisks()
})

/** Mounts a file system with some files of group 100 as the directory of a node's volumes. */
function mountVolumes(node: BinaryNode, fsType: (typeof FS_TYPES)[number]): string {
  const directory = node.volumes
  const mount = (...args: string[]) => {
    run('mount', ...args)
    mounted.push(args.at(-1) ?? '')
  }
  if (fsType === 'tmpfs') mount('-t', 'tmpfs', '-o', 'mode=0755', 'volumes', directory)
  else if (fsType === 'overlayfs') {
    const layers = `${node.top}/layers`
    fs.mkdirSync(layers)
    mount('-t', 'tmpfs', 'layers', layers)
    for (const name of ['lower', 'upper', 'work']) fs.mkdirSync(`${layers}/${name}`)
    const options = `lowerdir=${layers}/lower,upperdir=${layers}/upper,workdir=${layers}/work`
    mount('-t', 'overlay', '-o', options, 'overlay', directory)
  } else {
    makeImage(`${node.top}/disk.img`, fsType satisfies DiskType)
    mount(attachDisk(`${node.top}/disk.img`), directory)
  }
  if (fsType === 'tmpfs' || fsType === 'overlayfs') {
    fs.mkdirSync(`${directory}/sub`)
    fs.writeFileSync(`${directory}/sub/two`, 'content\n')
    fs.chownSync(`${directory}/sub`, 0, ON_DISK)
    fs.chownSync(`${directory}/sub/two`, 0, ON_DISK)
  }
  return `${directory}/sub`
}

describe('file systems of this kernel', () => {
  it.each(FS_TYPES)('on %s, doctor names what ownership idmap then does', async (fsType) => {
    const node = new BinaryNode()
    const source = mountVolumes(node, fsType)
    const { findings }: DoctorDocument = JSON.parse(
      run('env', `MODEKEEP_CONFIG=${node.top}/config.json`, BINARY, 'doctor', '--json'),
    )
    expect(findings.filter(({ level }) => level === 'fault')).toEqual([])
    const isPromised = findings.some(({ text }) =>
      text.startsWith(`${node.volumes} can be mounted, and its file system maps`),
    )
    const answer = await mountPod(node, source, 'idmap')
    expect([isPromised, answer.status, answer.message ?? '']).toEqual([
      isPromised,
      isPromised ? 'Success' : 'Failure',
      isPromised ? '' : expect.stringMatching(/cannot mount \w+ idmapped/),
    ])
    if (!isPromised) return
    const shown = fs.statSync(`${node.podDirectory('a')}/two`)
    expect([shown.gid, fs.statSync(`${source}/two`).gid]).toEqual([POD_GROUP, ON_DISK])
    expect(await node.call('unmount', node.podDirectory('a'))).toEqual(SUCCESS)
  })

  it.each(FS_TYPES.filter((fsType) => fsType !== 'squashfs'))(
    'on %s, a walk applies the group and the unmount restores every inode',
    async (fsType) => {
      const node = new BinaryNode()
      const source = mountVolumes(node, fsType)
      const before = fs.statSync(`${source}/two`)
      expect(await mountPod(node, source, 'walk', { restoreOnUnmount: 'true' })).toEqual(SUCCESS)
      expect(fs.statSync(`${node.podDirectory('a')}/two`).gid).toBe(POD_GROUP)
      // Nothing is changed by a repeated mount.
      expect(await mountPod(node, source, 'walk', { restoreOnUnmount: 'true' })).toEqual(SUCCESS)
      expect(await node.call('unmount', node.podDirectory('a'))).toEqual(SUCCESS)
      const { gid, mode, uid } = fs.statSync(`${source}/two`)
      expect({ gid, mode, uid }).toEqual({ gid: before.gid, mode: before.mode, uid: before.uid })
      expect(node.mountState()).toEqual([])
    },
  )
})
