import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import { daemonsOf } from '../../kubelet/cases/fuse.ts'
import { makeFiles } from '../../kubelet/cases/tree.ts'
import { INSTALLED } from '../../kubelet/node/drivers.ts'
import { hasFailedToSetUp, hasFailedToTearDown } from '../../kubelet/node/kubelet-log.ts'
import { until } from '../../kubelet/node/until.ts'
import type { Cluster } from '../plane/cluster.ts'
import { keepsNothingOf, mounts } from '../plane/mounts.ts'
import { type Door, exec, gone, inline, pod, podSpec, remove, running } from '../plane/pods.ts'
import { componentsFor, podsOfRelease, releaseOf, rolledOut, withdrawRelease } from '../plane/release.ts'
import type { Case } from './case.ts'

const deleted: Case = {
  name: 'the manifests are deleted under running pods: the pods keep their mounts, FlexVolume serves, CSI waits, and both serve after a new apply',
  async run(cluster) {
    const kinds = { 'kept-flex': 'flex', 'kept-csi': 'csi', 'kept-daemon': 'daemon' } as const
    const ends = { 'ends-flex': 'flex', 'ends-csi': 'csi' } as const
    const [kept, ending] = [await podsOf(cluster, kinds), await podsOf(cluster, ends)]
    const seen = () => kept.map(({ door, uid }) => [mounts(door, uid), daemonsOf(uid)])
    const before = seen()
    await withdrawRelease(cluster)
    assert(fs.existsSync(INSTALLED), 'the driver is gone from the node')
    await cluster.kubectl('delete', 'pod', '--wait=false', ...Object.keys(ends))
    await makePod(cluster, 'later-csi', 'csi')
    await makePod(cluster, 'later-flex', 'flex')
    await running(cluster, 'later-flex')
    const [flex, csi] = ending
    assert(flex && csi)
    await gone(flex.uid)
    const { kubelet } = cluster.daemons
    await until('kubelet tried to end the CSI volume', () => hasFailedToTearDown(kubelet.log(), csi.uid))
    const later = (await cluster.get('pod/later-csi'))?.metadata.uid
    await until('kubelet tried to mount the CSI volume', () => hasFailedToSetUp(kubelet.log(), later))
    assert.deepEqual([mounts('csi', csi.uid).length, mounts('csi', later)], [1, []])
    assert.deepEqual(seen(), before)
    await read(cluster, ...Object.keys(kinds))

    await cluster.apply(...releaseOf(cluster, '1'))
    await rolledOut(cluster)
    await gone(csi.uid)
    await running(cluster, 'later-csi')
    assert.deepEqual(seen(), before)
    const all = [...Object.keys(kinds), 'later-flex', 'later-csi']
    await read(cluster, ...all)
    await remove(cluster, ...all)
    await keepsNothingOf(flex.uid, csi.uid, later, ...kept.map(({ uid }) => uid))
    return 'three pods in the same mounts throughout; of CSI one waited to end and one to start'
  },
}

const uninstalled: Case = {
  name: 'the component uninstall waits for the last pod with a FlexVolume, then removes the driver, and the manifests install it again',
  async run(cluster) {
    const [last] = await podsOf(cluster, { 'last-flex': 'flex' })
    assert(last)
    const before = mounts('flex', last.uid)
    const withUninstall = [...componentsFor(cluster), 'components/uninstall']
    await cluster.apply(...releaseOf(cluster, '1', withUninstall))
    await until('it says what it waits for', async () => {
      const [name = '', ...others] = await podsOfRelease(cluster)
      const said = await cluster.kubectl('logs', '-n', 'kube-system', name, '-c', 'uninstall')
      return others.length === 0 && said.includes(last.uid)
    })
    assert.deepEqual([mounts('flex', last.uid), fs.existsSync(INSTALLED)], [before, true])
    await read(cluster, 'last-flex')
    await remove(cluster, 'last-flex')
    await cluster.kubectl('rollout', 'status', 'daemonset/modekeep', '-n', 'kube-system', '--timeout=240s')
    assert(!fs.existsSync(INSTALLED), 'the driver is there still')
    await withdrawRelease(cluster, withUninstall)

    await cluster.apply(...releaseOf(cluster, '1'))
    await rolledOut(cluster)
    const again = await podsOf(cluster, { 'again-flex': 'flex', 'again-csi': 'csi' })
    await read(cluster, 'again-flex', 'again-csi')
    await remove(cluster, 'again-flex', 'again-csi')
    await keepsNothingOf(last.uid, ...again.map(({ uid }) => uid))
    return 'waited, then gone; both doors serve after the manifests came again'
  },
}

type Kind = Door | 'daemon'

async function makePod(cluster: Cluster, name: string, kind: Kind): Promise<void> {
  const source = makeFiles(`${cluster.volumes}/${name}`, { file: 0o644 })
  const volume = kind === 'daemon' ? inline('csi', 'v', { source }, 'fuse.bindfs') : inline(kind, 'v', { source })
  await cluster.apply(pod(name, podSpec([volume])))
}

/** Pods with a volume each that are ready. */
async function podsOf(cluster: Cluster, kinds: Readonly<Record<string, Kind>>): Promise<{ door: Door; uid: string }[]> {
  for (const [name, kind] of Object.entries(kinds)) await makePod(cluster, name, kind)
  const found: { door: Door; uid: string }[] = []
  for (const [name, kind] of Object.entries(kinds)) {
    const { uid } = (await running(cluster, name)).metadata
    found.push({ door: kind === 'flex' ? 'flex' : 'csi', uid })
  }
  return found
}

async function read(cluster: Cluster, ...names: readonly string[]): Promise<void> {
  for (const name of names) assert.equal(await exec(cluster, name, 'cat /data/v/file'), 'file', name)
}

export const REMOVED: readonly Case[] = [deleted, uninstalled]
