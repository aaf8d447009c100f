import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { describe, expect, it } from 'vitest'
import { mount } from '../../src/mount/mount.ts'
import { readRequest } from '../../src/request/request.ts'
import { kinds } from '../../src/volume/index.ts'
import { cannotMount } from '../kernel/mapped-volume.ts'
import { nodeWith, type TestNode, UID } from './node.ts'

const why = cannotMount('ext4')
const OTHER = UID.replace('0a', 'ff')

function make(path: string, gid = 500): string {
  fs.mkdirSync(path, { recursive: true })
  fs.chownSync(path, 0, gid)
  return path
}

const run = (...args: string[]) => execFileSync('mount', args)

/** A volume of another pod, as a CSI driver mounts a disk. */
function otherVolume(node: TestNode): string {
  const volume = make(`${node.kubeletDir}/pods/${OTHER}/volumes/kubernetes.io~csi/pv/mount`)
  run('-t', 'tmpfs', '-o', 'gid=500,mode=2770', 'none', volume)
  make(`${volume}/inner`)
  return volume
}

/** What a hostPath volume names. */
const attach = (node: TestNode, source: string) => node.attach(node.order([node.clone({ source, volume: 'host' })]))

const OF_KUBELET = "in kubelet's own directory or around it: use a volume of the pod"
const OF_POD = 'where the volume of a pod is mounted too'

describe.skipIf(why !== '')(`a hostPath that a rule of map allows${why}`, () => {
  it("is refused where it leads into kubelet's directory by another path", async () => {
    const node = nodeWith('ext4')
    otherVolume(node)
    make(`${node.kubeletDir}/pods/${OTHER}/volumes/kubernetes.io~empty-dir/cache`)
    run('--rbind', node.kubeletDir, make(`${node.top}/data/kubelet`))
    run('--bind', `${node.kubeletDir}/pods/${OTHER}`, make(`${node.top}/data/pod`))
    for (const source of [
      `kubelet/pods/${OTHER}/volumes/kubernetes.io~csi/pv/mount`,
      `kubelet/pods/${OTHER}/volumes/kubernetes.io~csi/pv/mount/inner`,
      `kubelet/pods/${OTHER}/volumes/kubernetes.io~empty-dir/cache`,
      'pod/volumes/kubernetes.io~empty-dir/cache',
      'kubelet',
    ]) {
      await expect(attach(node, `${node.top}/data/${source}`)).rejects.toThrow(OF_KUBELET)
    }
  })

  it('is refused where it shows the mount of a pod, or a part of it, by another mount', async () => {
    const node = nodeWith('ext4')
    const volume = otherVolume(node)
    run('--bind', volume, make(`${node.top}/data/whole`))
    run('--bind', `${volume}/inner`, make(`${node.top}/data/part`))
    for (const source of ['whole', 'whole/inner', 'part']) {
      await expect(attach(node, `${node.top}/data/${source}`)).rejects.toThrow(OF_POD)
    }
  })

  it("is refused where it leads into kubelet's directory to modekeep's own volume", async () => {
    const node = nodeWith('ext4')
    const directory = make(`${node.kubeletDir}/pods/${OTHER}/volumes/modekeep~fs/v`)
    const config = { ...node.session.config, allow: [{ sources: [node.volume] }] }
    const options = JSON.stringify({ source: node.volume, 'kubernetes.io/pod.uid': OTHER })
    await mount({ ...node.session, config }, readRequest(directory, options, config, kinds))
    run('--rbind', node.kubeletDir, make(`${node.top}/data/kubelet`))
    const source = `${node.top}/data/kubelet/pods/${OTHER}/volumes/modekeep~fs/v`
    await expect(attach(node, source)).rejects.toThrow(OF_KUBELET)
    // The directory that it shows is one of the node, which a rule names.
    expect(await attach(node, node.volume)).toHaveLength(1)
  })

  it.each(['state', 'state/nri', 'state/nri/below', 'ownership', 'top/state/mounts'])(
    "is refused where it leads to modekeep's records: %s",
    async (source) => {
      const node = nodeWith('ext4')
      for (const name of ['nri/below', 'ownership', 'mounts']) make(`${node.top}/state/${name}`)
      run('--bind', `${node.top}/state`, make(`${node.top}/data/state`))
      run('--bind', `${node.top}/state/ownership`, make(`${node.top}/data/ownership`))
      run('--bind', node.top, make(`${node.top}/data/top`))
      await expect(attach(node, `${node.top}/data/${source}`)).rejects.toThrow("holds modekeep's own records")
    },
  )

  it('is a clone where it is a directory of the node, also one that kubelet has bound for a local volume', async () => {
    const node = nodeWith('ext4')
    const data = make(`${node.top}/fs/data`)
    run('--bind', data, make(`${node.kubeletDir}/pods/${OTHER}/volumes/kubernetes.io~local-volume/pv`))
    run('--bind', data, make(`${node.top}/data/bound`))
    expect(await attach(node, data)).toHaveLength(1)
    const order = node.order([node.clone({ source: `${node.top}/data/bound`, volume: 'host' })], { container: 'b2' })
    expect(await node.attach(order)).toHaveLength(1)
  })

  it('has the mount table read once, however many sources there are', async () => {
    const node = nodeWith('ext4')
    const { host } = node.session
    let reads = 0
    const table = () => {
      reads++
      return host.mounts.table()
    }
    node.session.host = { ...host, mounts: { ...host.mounts, table, hasMountsOn: () => false } }
    const sources = ['a', 'b', 'c'].map((name) => make(`${node.top}/fs/${name}`, 1500))
    await node.attach(node.order(sources.map((source) => node.clone({ source, volume: 'host' }))))
    expect(reads).toBe(1)
  })
})
