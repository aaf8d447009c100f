import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { describe, expect, it } from 'vitest'
import type { MapRule } from '../../src/config/map-rule.ts'
import { parseFlexVolumeRequest } from '../../src/config/request.ts'
import { mountPodVolume } from '../../src/mount/mount.ts'
import { volumeKindLookup } from '../../src/volume/index.ts'
import { cannotMount } from '../real-mounts/mapped-volume.ts'
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
  it("is refused if it leads into kubelet's directory by another path", async () => {
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

  it('is refused if another mount of it shows the mount of a pod, or a part of it', async () => {
    const node = nodeWith('ext4')
    const volume = otherVolume(node)
    run('--bind', volume, make(`${node.top}/data/whole`))
    run('--bind', `${volume}/inner`, make(`${node.top}/data/part`))
    for (const source of ['whole', 'whole/inner', 'part']) {
      await expect(attach(node, `${node.top}/data/${source}`)).rejects.toThrow(OF_POD)
    }
  })

  it("is refused if it leads to modekeep's own volume in kubelet's directory", async () => {
    const node = nodeWith('ext4')
    const directory = make(`${node.kubeletDir}/pods/${OTHER}/volumes/modekeep~fs/v`)
    const config = { ...node.session.config, allow: [{ sources: [node.volume] }] }
    const options = JSON.stringify({ source: node.volume, 'kubernetes.io/pod.uid': OTHER })
    await mountPodVolume(
      { ...node.session, config },
      parseFlexVolumeRequest(directory, options, config, volumeKindLookup),
    )
    run('--rbind', node.kubeletDir, make(`${node.top}/data/kubelet`))
    const source = `${node.top}/data/kubelet/pods/${OTHER}/volumes/modekeep~fs/v`
    await expect(attach(node, source)).rejects.toThrow(OF_KUBELET)
    // The directory that it shows is one of the node, which a rule names.
    expect(await attach(node, node.volume)).toHaveLength(1)
  })

  it.each(['state', 'state/nri', 'state/nri/below', 'ownership', 'top/state/mounts'])(
    "is refused if it leads to modekeep's records: %s",
    async (source) => {
      const node = nodeWith('ext4')
      for (const name of ['nri/below', 'ownership', 'mounts']) make(`${node.top}/state/${name}`)
      run('--bind', `${node.top}/state`, make(`${node.top}/data/state`))
      run('--bind', `${node.top}/state/ownership`, make(`${node.top}/data/ownership`))
      run('--bind', node.top, make(`${node.top}/data/top`))
      await expect(attach(node, `${node.top}/data/${source}`)).rejects.toThrow("holds modekeep's own records")
    },
  )

  it.each(['logs', 'logs/log', 'etc', 'top'])(
    'is refused if it is or contains the log or the configuration: %s',
    async (source) => {
      const node = nodeWith('ext4')
      const [logs, etc] = [make(`${node.top}/fs/logs`), make(`${node.top}/fs/etc/modekeep`)]
      Object.assign(node.session.config, { logFile: `${logs}/log`, configFile: `${etc}/config.json` })
      for (const file of [`${logs}/log`, `${etc}/config.json`]) fs.writeFileSync(file, '')
      run('--bind', logs, make(`${node.top}/data/logs`))
      run('--bind', `${node.top}/fs/etc`, make(`${node.top}/data/etc`))
      run('--bind', `${node.top}/fs`, make(`${node.top}/data/top`))
      for (const options of [undefined, ['rbind', 'rprivate', 'ro']]) {
        const clone = node.clone({ source: `${node.top}/data/${source}`, volume: 'host', ...(options && { options }) })
        await expect(node.attach(node.order([clone]))).rejects.toThrow(/which holds modekeep's (log|configuration) "/)
      }
      const beside = node.clone({ source: make(`${node.top}/fs/logs-2`), volume: 'host' })
      expect(await node.attach(node.order([beside]))).toHaveLength(1)
    },
  )

  describe('with rules of map that name other paths', () => {
    const allowOther = (node: TestNode, ...rules: readonly MapRule[]) => {
      const all = { volumes: ['hostPath'], sources: [`${node.top}/data/*`], fsTypes: ['ext4'], systemGroups: true }
      node.session.config = { ...node.session.config, map: [all, ...rules] }
    }

    function bound() {
      const node = nodeWith('ext4')
      make(`${node.top}/fs/strict/team/inner`)
      run('--bind', `${node.top}/fs`, make(`${node.top}/data/top`))
      run('--bind', `${node.top}/fs/strict/team`, make(`${node.top}/data/team`))
      return node
    }

    it.each(['team', 'team/inner', 'top/strict/team', 'top/strict'])(
      'is refused if a rule names its location by another path for another namespace: %s',
      async (source) => {
        const node = bound()
        const rule = { namespaces: ['team'], volumes: ['hostPath'], sources: [`${node.top}/fs/strict/*`] }
        allowOther(node, rule)
        await expect(attach(node, `${node.top}/data/${source}`)).rejects.toThrow('which a rule of "map" names')
        allowOther(node, { ...rule, namespaces: ['default'], sources: [`${node.top}/fs/*`], systemGroups: true })
        expect(await attach(node, `${node.top}/data/${source}`)).toHaveLength(1)
      },
    )

    it('is refused if the rule for its other path has other file systems or groups', async () => {
      const node = bound()
      const rule = { volumes: ['hostPath'], sources: [`${node.top}/fs/strict/*`], systemGroups: true }
      allowOther(node, { ...rule, fsTypes: ['xfs'] })
      await expect(attach(node, `${node.top}/data/team`)).rejects.toThrow('allows xfs here')
      allowOther(node, { ...rule, fsTypes: ['ext4'], groups: ['3000'] })
      await expect(attach(node, `${node.top}/data/team`)).rejects.toThrow('group 2000')
    })

    it('is refused if the rule for its other path does not permit a system group', async () => {
      const node = bound()
      const rule = { volumes: ['hostPath'], sources: [`${node.top}/fs/strict/*`] }
      fs.chmodSync(node.top, 0o755)
      allowOther(node, rule)
      await expect(attach(node, `${node.top}/data/team`)).rejects.toThrow('a group of the system')
      allowOther(node, { ...rule, systemGroups: true })
      expect(await attach(node, `${node.top}/data/team`)).toHaveLength(1)
    })
  })

  it('is cloned if it is a directory of the node, also if kubelet has bound it for a local volume', async () => {
    const node = nodeWith('ext4')
    const data = make(`${node.top}/fs/data`)
    run('--bind', data, make(`${node.kubeletDir}/pods/${OTHER}/volumes/kubernetes.io~local-volume/pv`))
    run('--bind', data, make(`${node.top}/data/bound`))
    expect(await attach(node, data)).toHaveLength(1)
    const order = node.order([node.clone({ source: `${node.top}/data/bound`, volume: 'host' })], { container: 'b2' })
    expect(await node.attach(order)).toHaveLength(1)
  })

  it('is checked with one read of the mount table for any number of sources', async () => {
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
