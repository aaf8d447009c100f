import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import { look, makeFiles } from '../../kubelet/cases/tree.ts'
import { until } from '../../kubelet/node/until.ts'
import type { Resource } from '../../kubernetes/render.ts'
import { bind, byClaim, claimed, event, exec, inline, pod, podSpec, remove, running } from '../plane/pods.ts'
import type { Case } from './case.ts'

const walks: Case = {
  name: 'a second group for a walked volume is refused in the event, until the first pod is gone',
  async run(cluster) {
    const source = makeFiles(`${cluster.volumes}/two-walks`, { shared: 0o660 })
    const volume = inline('flex', 'v', { source, ownership: 'walk' })
    await cluster.apply(pod('walk-2000', podSpec([volume], 2000)))
    await running(cluster, 'walk-2000')
    await cluster.apply(pod('walk-3000', podSpec([volume], 3000)))
    const refusal = await event(cluster, 'walk-3000', '2000')
    assert.equal(look(source).get('shared')?.group, 2000)
    await remove(cluster, 'walk-2000')
    await running(cluster, 'walk-3000')
    assert.equal(look(source).get('shared')?.group, 3000)
    await remove(cluster, 'walk-3000')
    return `"${/reason: (.*)$/s.exec(refusal)?.[1] ?? refusal}"; then it ran`
  },
}

const mapped: Case = {
  name: 'two pods with two groups share one volume by idmap, and each sees its own group',
  async run(cluster) {
    const source = makeFiles(`${cluster.volumes}/two-mapped`, { shared: 0o660 })
    for (const path of [source, `${source}/shared`]) fs.chownSync(path, 0, 1500)
    const before = look(source)
    const volume = inline('flex', 'v', { source, ownership: 'idmap' })
    for (const group of [2000, 3000]) await cluster.apply(pod(`mapped-${group}`, podSpec([volume], group)))
    const seen = []
    for (const group of [2000, 3000]) {
      await running(cluster, `mapped-${group}`)
      seen.push(await exec(cluster, `mapped-${group}`, 'stat -c %g /data/v/shared'))
    }
    await remove(cluster, 'mapped-2000', 'mapped-3000')
    assert.deepEqual(seen, ['2000', '3000'])
    assert.deepEqual(look(source), before)
    return `see ${seen.join(' and ')}, nothing changed on disk`
  },
}

const rolling: Case = {
  name: 'a Deployment on a CSI claim is updated without a gap, and its old pods leave nothing',
  async run(cluster) {
    const source = makeFiles(`${cluster.volumes}/rolling`, { file: 0o644 })
    const labels = { app: 'rolling' }
    const deployment = (version: string): Resource => ({
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: 'rolling', namespace: 'default' },
      spec: {
        replicas: 2,
        selector: { matchLabels: labels },
        template: { metadata: { labels, annotations: { version } }, spec: podSpec([byClaim('v', 'rolling')]) },
      },
    })
    await bind(cluster, 'rolling', claimed('csi', 'rolling', { source }))
    await cluster.apply(deployment('1'))
    const done = () => cluster.kubectl('rollout', 'status', 'deployment/rolling', '--timeout=90s')
    await done()
    await cluster.apply(deployment('2'))
    await done()
    const pods = async (): Promise<Resource[]> => (await cluster.get('pods'))?.items ?? []
    await until('only new pods are there', async () => {
      const found = (await pods()).filter(({ metadata }) => metadata.labels?.app === 'rolling')
      return found.length === 2 && found.every(({ metadata }) => metadata.annotations.version === '2')
    })
    await cluster.kubectl('delete', 'deployment/rolling')
    await until('all are gone', async () => (await pods()).every(({ metadata }) => metadata.labels?.app !== 'rolling'))
    return 'two replicas updated'
  },
}

export const GROUPS = [walks, mapped, rolling]
