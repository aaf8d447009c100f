import assert from 'node:assert/strict'
import { FSGROUP, look, makeFiles } from '../../kubelet/cases/tree.ts'
import { until } from '../../kubelet/node/until.ts'
import type { Resource } from '../../kubernetes/render.ts'
import { NODE } from '../plane/certificates.ts'
import type { Cluster } from '../plane/cluster.ts'
import { isForNode } from '../plane/node-of-pod.ts'
import { inline, pod, podSpec, remove, running } from '../plane/pods.ts'
import { podsOfRelease } from '../plane/release.ts'
import type { Case } from './case.ts'

const asked: Case = {
  name: 'kubectl modekeep shows the mounts, logs and faults of the nodes, restores a volume, and names a node that it cannot query',
  async run(cluster) {
    const source = makeFiles(`${cluster.volumes}/asked`, { file: 0o644 })
    const other = makeFiles(`${cluster.volumes}/asked-csi`, { file: 0o644 })
    await cluster.apply(pod('asked-flex', podSpec([inline('flex', 'v', { source, ownership: 'walk' })], FSGROUP)))
    await cluster.apply(pod('asked-csi', podSpec([inline('csi', 'v', { source: other })])))
    for (const name of ['asked-flex', 'asked-csi']) await running(cluster, name)

    const status = await cluster.plugin('status')
    assert.deepEqual([status.exit, status.stderr], [0, ''])
    for (const row of [`asked-flex +${source} +${FSGROUP} +walk`, `asked-csi +${other} +- +none`]) {
      const whole = new RegExp(`^${NODE} +default/${row} +2\\d{3}-\\S+ \\S+ +healthy$`, 'm')
      assert.match(status.stdout, whole)
    }
    const none = await cluster.plugin('status', 'default/none')
    assert.deepEqual([none.exit, none.stdout], [1, ''], none.stderr)
    assert.match(none.stderr, /what was named is on no node that was asked/)
    const one = await cluster.plugin('status', 'default/asked-flex')
    assert.deepEqual([one.exit, one.stdout.match(/ default\//g)?.length], [0, 1])
    const doctor = await cluster.plugin('doctor', '--node', NODE)
    assert.match(doctor.stdout, new RegExp(`^${NODE} +\\d+ +\\d+ +\\d+$`, 'm'))
    assert([0, 1].includes(doctor.exit), doctor.stderr)
    const logs = await cluster.plugin('logs', '--pod', 'default/asked-flex')
    assert.match(logs.stdout, new RegExp(`^${NODE} {2}\\S+Z +info +mount +Success`, 'm'))

    await remove(cluster, 'asked-flex', 'asked-csi')
    assert.equal(look(source).get('file')?.group, FSGROUP)
    const restore = await cluster.plugin('restore', source, '--node', NODE)
    assert.deepEqual([restore.exit, look(source).get('file')?.group], [0, 0], restore.stdout + restore.stderr)

    await withLostNode(cluster, async (lost) => {
      const { exit, stdout, stderr } = await cluster.plugin('status')
      assert.equal(exit, 3)
      assert.match(stdout, new RegExp(`^${NODE} `, 'm'))
      assert.match(stderr, new RegExp(`node ${lost} was not asked: its pod \\S+ is Pending`))
      assert.equal((await cluster.plugin('restore', source, '--node', lost)).exit, 3)
    })
    return 'a table of one node; another one is named, status 3'
  },
}

/** Adds a node without a kubelet: the DaemonSet's controller makes a pod for it, which never starts. */
async function withLostNode(cluster: Cluster, work: (name: string) => Promise<void>): Promise<void> {
  const name = 'lost'
  const before = (await podsOfRelease(cluster)).length
  const metadata = { name, labels: { 'kubernetes.io/os': 'linux', 'kubernetes.io/hostname': name } }
  await cluster.apply({ apiVersion: 'v1', kind: 'Node', metadata })
  const wait = (count: number) =>
    until(`${count} pods of the DaemonSet`, async () => (await podsOfRelease(cluster)).length === count)
  try {
    await wait(before + 1)
    await work(name)
  } finally {
    await cluster.kubectl('delete', 'node', name)
    const pods = await podsFor(cluster, name)
    if (pods.length > 0) await cluster.kubectl('delete', ...pods, '-n', 'kube-system', '--force', '--grace-period=0')
    await wait(before)
  }
}

/** Lists the release's pods for a node. A pod that no scheduler placed names its node in its affinity alone. */
async function podsFor(cluster: Cluster, node: string): Promise<string[]> {
  const pods: Resource[] = await Promise.all(
    (await podsOfRelease(cluster)).map(async (pod) => (await cluster.get(pod, 'kube-system')) ?? {}),
  )
  return pods.filter(({ spec }) => isForNode(spec, node)).map(({ metadata }) => `pod/${metadata.name}`)
}

export const PLUGIN: readonly Case[] = [asked]
