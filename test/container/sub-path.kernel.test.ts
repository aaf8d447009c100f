import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { dirname } from 'node:path'
import { describe, expect, it } from 'vitest'
import { parseFlexVolumeRequest } from '../../src/config/request.ts'
import { mountPodVolume } from '../../src/mount/mount.ts'
import { volumeKindLookup } from '../../src/volume/index.ts'
import { cannotMount } from '../real-mounts/mapped-volume.ts'
import { mountedBelow, nodeWith, type TestNode, UID } from './node.ts'

/** As kubelet binds a subPath, by the pod's name of the volume. */
function bind(node: TestNode, source: string, volume = 'data', index = 0): string {
  const target = `${node.pod}/volume-subpaths/${volume}/app/${index}`
  fs.mkdirSync(dirname(target), { recursive: true })
  if (fs.statSync(source).isDirectory()) fs.mkdirSync(target)
  else fs.writeFileSync(target, '')
  execFileSync('mount', ['--bind', source, target])
  return target
}

const attachPart = (node: TestNode, part: string) =>
  node.attach(node.order([node.clone({ source: part, destination: '/m' })]))

/** Of a group that the pod could have chosen. */
function makeDirectory(path: string, gid: number): string {
  fs.mkdirSync(path, { recursive: true })
  fs.chownSync(path, 0, gid)
  return path
}

/** A volume in a directory of a disk that is kubelet's too. */
function emptyDir(node: TestNode, name: string): string {
  const volumes = `${node.pod}/volumes/kubernetes.io~empty-dir`
  fs.mkdirSync(volumes, { recursive: true })
  execFileSync('mount', ['--bind', makeDirectory(`${node.top}/fs/kubelet's disk`, 0), volumes])
  return makeDirectory(`${volumes}/${name}`, 500)
}

const REFUSED =
  'annotation modekeep/group is "data=2000", but volume "data" (at "/m") has a subPath of something else than the volume ' +
  'that kubelet has by this name: a hostPath with the name of a PersistentVolume (give the volume another name in the pod)'

const KINDS = ['ext4', 'xfs', 'btrfs', 'tmpfs'].map((fsType) => [fsType, cannotMount(fsType)] as const)

describe.each(KINDS)('a subPath on %s%s', (fsType, why) => {
  it.skipIf(why !== '')('is refused if the bound directory is no part of the volume that the path names', async () => {
    const node = nodeWith(fsType)
    const others = ['other', 'volume-2', 'volume\n'].map((name) => makeDirectory(`${node.top}/fs/${name}`, 500))
    const file = `${node.top}/fs/secret`
    fs.writeFileSync(file, '')
    const above = `${node.top}/fs`
    const elsewhere = makeDirectory(`${node.top}/elsewhere`, 500)
    for (const [index, other] of [...others, file, above, elsewhere].entries()) {
      await expect(attachPart(node, bind(node, other, 'data', index))).rejects.toThrow(REFUSED)
    }
    expect([node.records(), mountedBelow(node.stagingMount)]).toEqual([[], []])
  })

  it.skipIf(why !== '')(
    "has the group of the volume's root, in a volume that is a mount and in an emptyDir",
    async () => {
      const node = nodeWith(fsType)
      const [inMount = ''] = await attachPart(node, bind(node, makeDirectory(`${node.volume}/a b/c`, 7)))
      expect(fs.statSync(inMount).gid).toBe(7)
      fs.chownSync(`${node.volume}/a b/c`, 0, 500)
      expect(fs.statSync(inMount).gid).toBe(2000)
      const cache = emptyDir(node, 'cache')
      const part = bind(node, makeDirectory(`${cache}/sub`, 500), 'cache')
      const order = node.order([node.clone({ source: part })], { container: 'b1' })
      const [inDirectory = ''] = await node.attach(order)
      expect(fs.statSync(inDirectory).gid).toBe(2000)
      const beside = bind(node, makeDirectory(`${cache}-2`, 500), 'cache', 1)
      await expect(attachPart(node, beside)).rejects.toThrow(REFUSED)
    },
  )
})

describe('a subPath', () => {
  const noBtrfs = cannotMount('btrfs')
  it.skipIf(noBtrfs !== '')(
    `in a subvolume of btrfs is a part of the volume, and one next to it is not${noBtrfs}`,
    async () => {
      const node = nodeWith('btrfs')
      for (const path of [`${node.volume}/inner`, `${node.top}/fs/beside`]) {
        execFileSync('btrfs', ['-q', 'subvolume', 'create', path])
        fs.chownSync(path, 0, 500)
      }
      const [inner = ''] = await attachPart(node, bind(node, `${node.volume}/inner`))
      expect(fs.statSync(inner).gid).toBe(2000)
      const beside = bind(node, `${node.top}/fs/beside`, 'data', 1)
      await expect(attachPart(node, beside)).rejects.toThrow(REFUSED)
    },
  )
})

const skipped = cannotMount('tmpfs')

it.skipIf(skipped !== '')(
  `the mount table is read once for all subPaths of a container, and never for whole volumes${skipped}`,
  async () => {
    const node = nodeWith('tmpfs')
    const { host } = node.session
    let reads = 0
    const table = () => {
      reads++
      return host.mounts.table()
    }
    node.session.host = { ...host, mounts: { ...host.mounts, table, hasMountsOn: () => false } }
    await node.attach(node.order([node.clone()]))
    expect(reads).toBe(0)
    const parts = ['a', 'b', 'c'].map((name, index) =>
      bind(node, makeDirectory(`${node.source}/${name}`, 500), 'data', index),
    )
    await node.attach(node.order(parts.map((source) => node.clone({ source }))))
    expect(reads).toBe(1)
  },
)

describe.skipIf(skipped !== '')(`a subPath of a volume whose mount is restricted${skipped}`, () => {
  it.each(['ro', 'nosuid', 'nodev', 'noexec'])(
    'must have the mount option %s of the volume: a subPath mount without that option is refused',
    async (option) => {
      const node = nodeWith('tmpfs')
      makeDirectory(`${node.volume}/sub`, 500)
      execFileSync('mount', ['-o', `remount,bind,${option}`, node.source])
      const [clone = ''] = await attachPart(node, bind(node, `${node.source}/sub`))
      expect(execFileSync('findmnt', ['-no', 'VFS-OPTIONS', clone], { encoding: 'utf8' }).split(/[,\n]/)).toContain(
        option,
      )
      const byHostPath = bind(node, `${node.volume}/sub`, 'data', 1)
      await expect(attachPart(node, byHostPath)).rejects.toThrow('is not restricted as the volume')
    },
  )
})

const HOLDS_RECORDS = "which holds modekeep's own records: name another directory"

describe.skipIf(skipped !== '')(`a volume of another driver${skipped}`, () => {
  it('is refused if modekeep has mounted it, under any name of its CSI driver', async () => {
    const node = nodeWith('tmpfs')
    const directory = `${node.pod}/volumes/kubernetes.io~csi/own/mount`
    fs.mkdirSync(directory, { recursive: true })
    const sub = makeDirectory(`${node.volume}/sub`, 500)
    const config = { ...node.session.config, allow: [{ sources: [node.volume] }] }
    const options = {
      source: node.volume,
      'kubernetes.io/fsType': 'bind',
      'kubernetes.io/pod.uid': UID,
      ownership: 'none',
    }
    await mountPodVolume(
      { ...node.session, config },
      parseFlexVolumeRequest(directory, JSON.stringify(options), config, volumeKindLookup),
    )
    const wayOut = "is modekeep's own, so \"allow\" of the node's configuration decides: set the pod's fsGroup to 2000"
    const part = bind(node, `${directory}/sub`, 'own')
    for (const source of [directory, part]) {
      await expect(node.attach(node.order([node.clone({ source })]))).rejects.toThrow(wayOut)
    }
    expect(fs.statSync(sub).gid).toBe(500)
  })

  it("is refused if it shows modekeep's records, by any mount", async () => {
    const node = nodeWith('tmpfs')
    const records = `${node.top}/state/nri`
    fs.mkdirSync(`${records}/sub`, { recursive: true })
    const local = `${node.pod}/volumes/kubernetes.io~local-volume/pv`
    fs.mkdirSync(local, { recursive: true })
    execFileSync('mount', ['--bind', node.top, local])
    for (const [index, shown] of [records, `${records}/sub`, `${node.top}/state`].entries()) {
      const part = bind(node, shown, 'pv', index)
      await expect(attachPart(node, part)).rejects.toThrow(HOLDS_RECORDS)
    }
    await expect(node.attach(node.order([node.clone({ source: local })]))).rejects.toThrow(HOLDS_RECORDS)
  })
})
