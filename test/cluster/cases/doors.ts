import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import { FSGROUP, look, makeFiles, modes, SIX, SIX_MODES } from '../../kubelet/cases/tree.ts'
import { bind, byClaim, claimed, event, exec, inline, pod, podSpec, remove, running } from '../plane/pods.ts'
import type { Case } from './case.ts'

const bothInline: Case = {
  name: 'one inline source through FlexVolume and CSI at once: each pod sees what the other writes',
  async run(cluster) {
    const source = makeFiles(`${cluster.volumes}/both-inline`, { file: 0o666 })
    for (const door of ['flex', 'csi'] as const) {
      await cluster.apply(pod(`inline-${door}`, podSpec([inline(door, 'v', { source })])))
    }
    for (const door of ['flex', 'csi']) await running(cluster, `inline-${door}`)
    await exec(cluster, 'inline-flex', 'echo flex >/data/v/file')
    const seen = await exec(cluster, 'inline-csi', 'cat /data/v/file && echo csi >>/data/v/file')
    await remove(cluster, 'inline-flex', 'inline-csi')
    assert.equal(seen, 'flex')
    assert.equal(fs.readFileSync(`${source}/file`, 'utf8'), 'flex\ncsi\n')
    return 'both run, one file'
  },
}

const bothClaimed: Case = {
  name: 'a PersistentVolume and its claim are mounted through FlexVolume and through CSI',
  async run(cluster) {
    for (const door of ['flex', 'csi'] as const) {
      const source = makeFiles(`${cluster.volumes}/claimed-${door}`, { file: 0o644 })
      const name = `claimed-${door}`
      await bind(cluster, name, claimed(door, name, { source }))
      await cluster.apply(pod(name, podSpec([byClaim('v', name)])))
    }
    const seen = []
    for (const name of ['claimed-flex', 'claimed-csi']) {
      await running(cluster, name)
      seen.push(await exec(cluster, name, 'cat /data/v/file'))
    }
    await remove(cluster, 'claimed-flex', 'claimed-csi')
    assert.deepEqual(seen, ['file', 'file'])
    return 'both bound and read'
  },
}

const flexGroup: Case = {
  name: 'a walk through FlexVolume applies the group and changes no mode',
  async run(cluster) {
    const source = makeFiles(`${cluster.volumes}/walked`, SIX)
    await cluster.apply(pod('walked', podSpec([inline('flex', 'v', { source, ownership: 'walk' })], FSGROUP)))
    await running(cluster, 'walked')
    const read = await exec(cluster, 'walked', 'cat /data/v/test5')
    await remove(cluster, 'walked')
    assert.deepEqual(modes(look(source)), SIX_MODES)
    assert.equal(look(source).get('test1')?.group, FSGROUP)
    return `reads ${read}, modes ${SIX_MODES.join(' ')}`
  },
}

const csiGroup: Case = {
  name: "the pod's group is applied through CSI",
  needs: '1.23',
  async run(cluster) {
    const source = makeFiles(`${cluster.volumes}/csi-walked`, SIX)
    await cluster.apply(pod('csi-walked', podSpec([inline('csi', 'v', { source, ownership: 'walk' })], FSGROUP)))
    await running(cluster, 'csi-walked')
    await remove(cluster, 'csi-walked')
    assert.deepEqual(modes(look(source)), SIX_MODES)
    assert.equal(look(source).get('test1')?.group, FSGROUP)
    return `modes ${SIX_MODES.join(' ')}`
  },
}

const noGroup: Case = {
  name: 'with a kubelet that passes no fsGroup, ownership through CSI is refused in the event, and nothing changes',
  before: '1.23',
  async run(cluster) {
    const source = makeFiles(`${cluster.volumes}/csi-groupless`, SIX)
    const before = look(source)
    await cluster.apply(pod('groupless', podSpec([inline('csi', 'v', { source, ownership: 'walk' })], FSGROUP)))
    const said = await event(cluster, 'groupless', 'rpc error', 'fsGroup')
    await remove(cluster, 'groupless')
    assert.deepEqual(look(source), before)
    return /desc = (.*)$/s.exec(said)?.[1] ?? said
  },
}

export const DOORS = [bothInline, bothClaimed, flexGroup, csiGroup, noGroup]
