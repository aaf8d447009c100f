import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import { FSGROUP, look, makeFiles } from '../../kubelet/cases/tree.ts'
import { KUBELETS_ROOT } from '../../kubelet/node/kubelet.ts'
import { until } from '../../kubelet/node/until.ts'
import type { Resource } from '../../kubernetes/render.ts'
import type { Cluster } from '../plane/cluster.ts'
import { keepsNothingOf, mountPoint, mounts, statusOfNode } from '../plane/mounts.ts'
import { exec, gone, inline, pod, podSpec, remove, running } from '../plane/pods.ts'
import { boot, powerOff, start } from '../plane/reboot.ts'
import { rolledOut } from '../plane/release.ts'
import type { Case } from './case.ts'

const rebooted: Case = {
  name: 'a reboot of the node: its pods get their volumes back without a walk, and pods deleted meanwhile leave nothing and are restored',
  async run(cluster) {
    const stays = await trio(cluster, 'boot-stays')
    const deleted = await trio(cluster, 'boot-deleted')
    const forced = await trio(cluster, 'boot-forced')
    const all = [stays, deleted, forced]
    const before = look(stays.walked)
    assert.deepEqual([all.map(groupOf), layers(stays)], [[FSGROUP, FSGROUP, FSGROUP], LAYERS])

    await powerOff(cluster)
    boot(cluster)
    const missing = all.flatMap(directories).toSorted()
    assert.deepEqual(
      await states(),
      missing.map((directory) => `${directory} missing: the node was rebooted`),
    )
    await cluster.kubectl('delete', 'pod', '--wait=false', ...deleted.names)
    await cluster.kubectl('delete', 'pod', '--force', '--grace-period=0', ...forced.names)
    await start(cluster)
    await rolledOut(cluster)

    for (const name of stays.names) await startedAgain(cluster, name)
    for (const name of stays.names) assert.equal(await exec(cluster, name, 'cat /data/v/file'), 'file')
    assert.deepEqual(layers(stays), LAYERS)
    for (const one of [deleted, forced]) await until('the group is back', () => groupOf(one) === 0)
    await until('no mount and no record of them is left', async () => {
      await keepsNothingOf(...deleted.uids, ...forced.uids)
      return true
    })
    for (const uid of [...deleted.uids, ...forced.uids]) await goneWithHelp(uid)
    assert.deepEqual(
      await states(),
      directories(stays).map((directory) => `${directory} healthy: `),
    )
    const { volumes } = await statusOfNode()
    const volume = volumes.find(({ source }) => source === stays.walked)
    assert.partialDeepStrictEqual(volume, RECORD)
    assert.deepEqual(look(stays.walked), before, 'walked again')

    await remove(cluster, ...stays.names)
    assert.equal(groupOf(stays), 0)
    await keepsNothingOf(...stays.uids)
    return 'three pods have their mounts, healthy; six deleted ones left nothing, the group of two is back at once'
  },
}

/** A bind mount by CSI, a FUSE daemon's with the guard below it, and a bind mount by FlexVolume. */
const LAYERS = [1, 2, 1]

/** What `modekeep status` says of a volume with one mount that is to be put back. */
const RECORD = {
  group: FSGROUP,
  groupAccess: 'keep',
  complete: true,
  left: null,
  restorePending: true,
  changed: null,
  mounts: 1,
  skipped: null,
  name: null,
  fault: null,
  walk: null,
}

/** Three pods, through CSI, through CSI with a daemon, and through FlexVolume with a group. */
interface Trio {
  names: string[]
  uids: string[]
  /** The source of the last one. */
  walked: string
}

async function trio(cluster: Cluster, name: string): Promise<Trio> {
  const walked = makeFiles(`${cluster.volumes}/${name}-walked`, { file: 0o640 })
  const source = makeFiles(`${cluster.volumes}/${name}-plain`, { file: 0o644 })
  const specs = {
    csi: podSpec([inline('csi', 'v', { source })]),
    daemon: podSpec([inline('csi', 'v', { source }, 'fuse.bindfs')]),
    flex: podSpec([inline('flex', 'v', { source: walked, ownership: 'walk', restoreOnUnmount: 'true' })], FSGROUP),
  }
  const pods = Object.entries(specs).map(([kind, spec]) => pod(`${name}-${kind}`, spec))
  await cluster.apply(...pods)
  const names = pods.map(({ metadata }) => metadata.name as string)
  const uids: string[] = []
  for (const one of names) uids.push((await running(cluster, one)).metadata.uid)
  return { names, uids, walked }
}

const doorOf = (at: number) => (at === 2 ? 'flex' : 'csi')
const layers = ({ uids }: Trio) => uids.map((uid, at) => mounts(doorOf(at), uid).length)
const directories = ({ uids }: Trio) => uids.map((uid, at) => mountPoint(doorOf(at), uid)).toSorted()
const groupOf = ({ walked }: Trio) => look(walked).get('file')?.group

const states = async () =>
  (await statusOfNode()).mounts.map(({ directory, state, reason }) => `${directory} ${state}: ${reason}`)

/**
 * A starting kubelet checks the directories of deleted pods once. For CSI drivers that register later,
 * an older one keeps the directories indefinitely.
 */
async function goneWithHelp(uid: string): Promise<void> {
  fs.rmSync(`${KUBELETS_ROOT}/pods/${uid}/volumes/kubernetes.io~csi`, { recursive: true, force: true })
  await gone(uid)
}

/** A ready pod stays ready in the API server until kubelet has checked it. */
async function startedAgain(cluster: Cluster, name: string): Promise<void> {
  await until(`${name} was started again`, async () => {
    const found: Resource | undefined = await cluster.get(`pod/${name}`)
    const statuses: Resource[] = found?.status.containerStatuses ?? []
    if (statuses.some(({ ready, restartCount }) => ready && restartCount > 0)) return true
    throw new Error(JSON.stringify(statuses))
  })
}

export const REBOOT: readonly Case[] = [rebooted]
