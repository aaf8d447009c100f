import * as fs from 'node:fs'
import { runCommand as command } from '../../scripts/fetch/command.ts'
import { SandboxReader } from '../../src/frontends/nri/cri.ts'
import { SOCKET } from '../../test/kubelet/node/containerd.ts'
import { type RuntimeNode, startNode } from '../../test/runtimes/node/node.ts'
import type { Pod } from '../../test/runtimes/node/pod.ts'
import { CsiVolume } from '../../test/runtimes/node/volumes.ts'
import { inOrder } from '../statistics.ts'
import { makeTree } from '../tree.ts'
import { type Measured, type PodTimes, WAYS, type Way } from './results.ts'
import type { Bench } from './run.ts'

/** What a pod cost, in milliseconds. */
interface Cost {
  total: number
  /** Kubelet's walk; 0 where there is none. */
  walk: number
}

/** Times pods, on volumes of each size. Returns that nothing failed, or throws. */
export async function run(world: Bench): Promise<boolean> {
  const node = await startNode(world)
  node.configure()
  await node.startPlugin()
  const times: PodTimes[] = []
  for (const files of world.sizes) {
    const volume = filled(node, files)
    const costs = new Map<Way, Cost[]>(WAYS.map((way) => [way, []]))
    // The first round is for what a machine does once.
    for (let round = 0; round <= world.rounds; round++) {
      for (const way of inOrder(WAYS, round)) {
        const cost = await measured(node, volume, way, round, world.walk)
        console.log(`${files} files, ${way}: ${cost.total.toFixed(0)} ms`)
        if (round > 0) costs.get(way)?.push(cost)
      }
    }
    for (const way of WAYS) {
      const all = costs.get(way) ?? []
      const walks = all.map(({ walk }) => walk).filter((walk) => walk > 0)
      times.push({ way, files, total: all.map(({ total }) => total), walk: walks })
    }
    volume.unstage()
  }
  const results: Measured = { times, groupsAsked: await groupsAsked(node) }
  fs.writeFileSync(world.results, JSON.stringify(results))
  return false
}

const QUESTIONS = 200

/** What the plugin waits for where NRI does not tell a container's groups: the runtime's answer over CRI, ms each. */
async function groupsAsked(node: RuntimeNode): Promise<number[]> {
  const pod = await node.pod({ name: 'asked', volumes: {}, mounts: [], groups: [2000] }).begin()
  using groups = new SandboxReader(() => [SOCKET])
  const times: number[] = []
  for (let at = 0; at < 2 * QUESTIONS; at++) {
    const began = performance.now()
    const told = await groups.readGroups(pod.sandbox)
    if (at >= QUESTIONS) times.push(performance.now() - began)
    if (!told?.certain.includes(2000)) throw new Error(`the runtime tells the groups ${JSON.stringify(told)}, not 2000`)
  }
  await pod.remove()
  return times
}

/** A staged volume of so many files that their group may read and write, as an earlier fsGroup has left them. */
function filled({ place }: RuntimeNode, files: number): CsiVolume {
  const image = `${place}/${files}.ext4`
  command('truncate', ['-s', '4G', image])
  // Lazily written inode tables would be written while somebody is measured.
  const eager = ['-E', 'lazy_itable_init=0,lazy_journal_init=0']
  command('mkfs.ext4', ['-q', '-F', '-N', String(Math.ceil(files * 1.1) + 1000), ...eager, image])
  const volume = new CsiVolume(`files-${files}`, ['-o', 'loop', image]).stage()
  makeTree(`${volume.path}/tree`, files)
  command('chmod', ['-R', 'g+rwX', volume.path])
  command('chgrp', ['-R', '500', volume.path])
  return volume
}

async function measured(node: RuntimeNode, volume: CsiVolume, way: Way, round: number, walk: string): Promise<Cost> {
  // As on a node that has just got the volume: nothing of it is in memory.
  volume.unstage()
  volume.stage()
  const group = way === 'modekeep nri' ? 5000 : 2000 + round
  const pod = node.pod({
    name: `pod-${round}`,
    annotations: way === 'modekeep nri' ? { 'modekeep/group': String(group) } : {},
    volumes: { data: volume },
    mounts: [{ name: 'data', mountPath: '/data' }],
    groups: way === 'no group' ? [] : [group],
  })
  const began = performance.now()
  await pod.begin()
  // It says itself how long the walk took, as kubelet starts no process for it.
  const before = performance.now()
  const walked = way === "kubelet's fsGroup" ? Number(command(walk, [volume.path, String(group)])) / 1e6 : 0
  const created = performance.now()
  await pod.create()
  await pod.start()
  const total = performance.now() - began - (created - before) + walked
  if (way !== 'no group') await mustWrite(pod, group)
  await pod.remove()
  return { total, walk: walked }
}

/** @throws {Error} where the pod did not get its group */
async function mustWrite(pod: Pod, group: number): Promise<void> {
  const seen = await pod.says('cd /data/tree/directory-0 && echo new >file-0 && stat -c %g . file-0')
  if (seen !== `${group}\n${group}`) throw new Error(`the pod sees group ${seen.replace('\n', ', ')}, not ${group}`)
}
