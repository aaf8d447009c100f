import assert from 'node:assert/strict'
import { makeFiles } from '../../kubelet/cases/tree.ts'
import { until } from '../../kubelet/node/until.ts'
import type { Resource } from '../../kubernetes/render.ts'
import type { Cluster } from '../plane/cluster.ts'
import { keepsNothingOf, mounts } from '../plane/mounts.ts'
import { bind, byClaim, claimed, type Door, exec, gone, pod, podSpec, running } from '../plane/pods.ts'
import type { Case } from './case.ts'

const DOORS: readonly Door[] = ['flex', 'csi']

const etcd: Case = {
  name: 'etcd is killed while pods are created and while they end: claims and pods are kept, with one mount each, and no record in the end',
  async run(cluster) {
    const both = DOORS.map((door) => of(cluster, 'etcd', door))
    for (const { claim, name } of both) await bind(cluster, name, claim)
    await cluster.apply(...both.map(({ wanted }) => wanted))
    const made = await uids(cluster, both)
    await cluster.restart('etcd', 'SIGKILL')
    const before = await serve(cluster, both, made)
    await cluster.restart('etcd', 'SIGKILL')
    // Also when kubelet has heard of its pods again.
    assert.deepEqual(await serve(cluster, both, made), before, 'mounted again')
    await cluster.kubectl('delete', 'pod', '--wait=false', ...both.map(({ name }) => name))
    await cluster.restart('etcd', 'SIGKILL')
    return ended(cluster, both, made)
  },
}

const deciders: Case = {
  name: 'a claim and a pod are created and deleted while scheduler and controller manager are down: nothing is lost and nothing remains',
  async run(cluster) {
    const both = DOORS.map((door) => of(cluster, 'deciders', door))
    const { 'kube-scheduler': scheduler, 'kube-controller-manager': manager } = cluster.daemons
    for (const daemon of [scheduler, manager]) await daemon.stop('SIGKILL')
    await cluster.apply(...both.flatMap(({ claim, wanted }) => [...claim, wanted]))
    const made = await uids(cluster, both)
    for (const { name } of both) {
      assert.equal((await cluster.get(`pod/${name}`))?.spec.nodeName, undefined, 'it was scheduled to a node')
      assert.equal((await cluster.get(`pvc/${name}`))?.status.phase, 'Pending')
    }
    manager.start()
    for (const { name } of both) {
      await until(`${name} is bound`, async () => (await cluster.get(`pvc/${name}`))?.status.phase === 'Bound')
    }
    scheduler.start()
    const before = await serve(cluster, both, made)
    for (const name of ['kube-scheduler', 'kube-controller-manager'] as const) await cluster.restart(name, 'SIGKILL')
    assert.deepEqual(await serve(cluster, both, made), before, 'mounted again')
    for (const daemon of [scheduler, manager]) await daemon.stop('SIGKILL')
    await cluster.kubectl('delete', 'pod', '--wait=false', ...both.map(({ name }) => name))
    // Kubelet ends a pod without them.
    for (const uid of made) await gone(uid)
    for (const daemon of [scheduler, manager]) daemon.start()
    return ended(cluster, both, made)
  },
}

interface Claimant {
  door: Door
  name: string
  claim: Resource[]
  wanted: Resource
}

/** A pod with a claim of its own through this door. */
function of({ volumes }: Cluster, what: string, door: Door): Claimant {
  const name = `${what}-${door}`
  const source = makeFiles(`${volumes}/${name}`, { file: 0o644 })
  return { door, name, claim: claimed(door, name, { source }), wanted: pod(name, podSpec([byClaim('v', name)])) }
}

const uids = (cluster: Cluster, all: readonly Claimant[]): Promise<string[]> =>
  Promise.all(all.map(async ({ name }) => (await cluster.get(`pod/${name}`))?.metadata.uid))

/** Waits until these very pods are ready and read. @returns the mount of each @throws {Error} unless each has one */
async function serve(cluster: Cluster, all: readonly Claimant[], made: readonly string[]): Promise<string[]> {
  const found: string[] = []
  for (const [at, { door, name }] of all.entries()) {
    const uid: string = (await running(cluster, name)).metadata.uid
    const [mount = 'none', ...others] = mounts(door, uid, name)
    assert.equal(uid, made[at], `${name} is another pod`)
    assert.deepEqual(others, [], `${name} has a second mount`)
    assert.equal(await exec(cluster, name, 'cat /data/v/file'), 'file')
    found.push(mount)
  }
  return found
}

/** Waits until all is gone, and takes the claims. @throws {Error} what is left of it */
async function ended(cluster: Cluster, all: readonly Claimant[], made: readonly string[]): Promise<string> {
  for (const [at, { name }] of all.entries()) {
    await gone(made[at] ?? '')
    await until(`${name} is no pod any more`, async () => (await cluster.get(`pod/${name}`)) === undefined)
    assert.equal((await cluster.get(`pvc/${name}`))?.status.phase, 'Bound')
  }
  await keepsNothingOf(...made)
  const claims = all.map(({ name }) => `pvc/${name}`)
  await cluster.kubectl('delete', '--wait', '--timeout=120s', ...claims, ...all.map(({ name }) => `pv/${name}`))
  return `${all.length} pods, one mount each, no record left`
}

export const PLANE_AWAY: readonly Case[] = [etcd, deciders]
