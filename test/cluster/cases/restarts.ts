import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import { makeFiles } from '../../kubelet/cases/tree.ts'
import { until } from '../../kubelet/node/until.ts'
import type { Resource } from '../../kubernetes/render.ts'
import type { Cluster } from '../plane/cluster.ts'
import { mounts } from '../plane/mounts.ts'
import { exec, gone, inline, pod, podSpec, remove, running } from '../plane/pods.ts'
import type { Case } from './case.ts'

const programs: Case = {
  name: 'mounts stay over restarts of kubelet, containerd and the API server',
  async run(cluster) {
    const source = makeFiles(`${cluster.volumes}/restarted`, { file: 0o644 })
    const doors = ['flex', 'csi'] as const
    for (const door of doors) await cluster.apply(pod(`kept-${door}`, podSpec([inline(door, 'v', { source })])))
    const pods: string[] = []
    for (const door of doors) pods.push((await running(cluster, `kept-${door}`)).metadata.uid)
    const all = () => doors.map((door, at) => mounts(door, pods[at] ?? ''))
    const before = all()
    for (const name of ['kubelet', 'containerd', 'kube-apiserver', 'kubelet'] as const) await cluster.restart(name)
    const after = all()
    const seen = await Promise.all(doors.map((door) => exec(cluster, `kept-${door}`, 'cat /data/v/file')))
    await remove(cluster, 'kept-flex', 'kept-csi')
    assert.deepEqual(after, before)
    assert.deepEqual([...before.map(({ length }) => length), ...seen], [1, 1, 'file', 'file'])
    return 'one mount each, the same one'
  },
}

const server: Case = {
  name: 'mounts stay over a restart of the CSI container, and a pod deleted meanwhile is cleaned up after the restart',
  async run(cluster) {
    const source = makeFiles(`${cluster.volumes}/server-away`, { file: 0o644 })
    await cluster.apply(pod('server-away', podSpec([inline('csi', 'v', { source })])))
    const { uid } = (await running(cluster, 'server-away')).metadata
    const before = mounts('csi', uid)
    await killServers(cluster, () => cluster.kubectl('delete', 'pod', 'server-away', '--wait=false'))
    await gone(uid)
    assert.equal(before.length, 1)
    assert.deepEqual(mounts('csi', uid), [])
    return 'restarted by kubelet, nothing left'
  },
}

/** Kills the CSI server and waits until kubelet has started another one, which is asked before it counts as ready. */
export async function killServers(
  { kubectl }: Cluster,
  meanwhile: () => Promise<unknown> = async () => {},
): Promise<void> {
  const restarts = async () => {
    const found = await kubectl('get', 'pods', '-n', 'kube-system', '-o', 'json')
    const statuses: Resource[] = JSON.parse(found).items.flatMap(({ status }: Resource) => status.containerStatuses)
    const csi = statuses.find(({ name }) => name === 'csi')
    return csi?.ready ? (csi.restartCount as number) : -1
  }
  const count = await restarts()
  for (const pid of servers()) process.kill(pid, 'SIGKILL')
  await meanwhile()
  await until('the server runs again', async () => (await restarts()) > count)
}

/** The processes of `modekeep csi`. */
function servers(): number[] {
  const found = fs.readdirSync('/proc').filter((pid) => {
    try {
      const words = fs.readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')
      return words[1] === 'csi' && /\/modekeep~fs\/fs$/.test(words[0] ?? '')
    } catch {
      return false
    }
  })
  assert(found.length > 0, 'no CSI server runs')
  return found.map(Number)
}

const stats: Case = {
  name: "the kubelet's summary has the use of a CSI volume",
  async run(cluster) {
    const options = { mountOptions: `size=${64 << 20}` }
    await cluster.apply(pod('stats', podSpec([inline('csi', 'v', options, 'tmpfs')])))
    await running(cluster, 'stats')
    await exec(cluster, 'stats', 'head -c 8388608 /dev/zero >/data/v/eight-mebibytes')
    let used = 0
    await until('the summary has the volume', async () => {
      const summary = JSON.parse(await cluster.kubectl('get', '--raw', '/api/v1/nodes/node/proxy/stats/summary'))
      const of = summary.pods.find(({ podRef }: Resource) => podRef.name === 'stats')
      const volume = of?.volume?.find(({ name }: Resource) => name === 'v')
      used = volume?.usedBytes ?? 0
      return volume?.capacityBytes === 64 << 20 && used >= 8 << 20
    })
    await remove(cluster, 'stats')
    return `${used} bytes used`
  },
}

export const RESTARTS = [programs, server, stats]
