import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import { makeFiles } from '../../kubelet/cases/tree.ts'
import { BINARY, INSTALLED } from '../../kubelet/node/drivers.ts'
import { exec, inline, pod, podSpec, remove, running } from '../plane/pods.ts'
import { giveImage, releaseOf, rolledOut } from '../plane/release.ts'
import type { Case } from './case.ts'

const upgraded: Case = {
  name: 'the DaemonSet is upgraded and rolled back under running pods, and both drivers keep serving',
  async run(cluster) {
    const source = makeFiles(`${cluster.volumes}/upgraded`, { file: 0o644 })
    for (const door of ['flex', 'csi'] as const) {
      await cluster.apply(pod(`stays-${door}`, podSpec([inline(door, 'v', { source })])))
    }
    for (const door of ['flex', 'csi']) await running(cluster, `stays-${door}`)
    // The same program with other bytes: an ELF file may have something after its end.
    const newer = `${cluster.elsewhere}/newer`
    fs.copyFileSync(BINARY, newer)
    fs.appendFileSync(newer, Buffer.alloc(4096))
    giveImage(cluster, '2', newer)
    const sizes: number[] = []
    await cluster.apply(...releaseOf(cluster, '2'))
    await rolledOut(cluster)
    sizes.push(fs.statSync(INSTALLED).size)
    await cluster.kubectl('rollout', 'undo', 'daemonset/modekeep', '-n', 'kube-system')
    await rolledOut(cluster)
    sizes.push(fs.statSync(INSTALLED).size)
    for (const door of ['flex', 'csi'] as const) {
      await cluster.apply(pod(`after-${door}`, podSpec([inline(door, 'v', { source })])))
    }
    const names = ['stays-flex', 'stays-csi', 'after-flex', 'after-csi']
    const seen = []
    for (const name of names) {
      await running(cluster, name)
      seen.push(await exec(cluster, name, 'cat /data/v/file'))
    }
    await remove(cluster, ...names)
    assert.deepEqual(sizes, [fs.statSync(newer).size, fs.statSync(BINARY).size])
    assert.deepEqual(seen, ['file', 'file', 'file', 'file'])
    return 'another executable, then the first one again; four pods read'
  },
}

export const DAEMON_SET = [upgraded]
