import * as fs from 'node:fs'
import { resolve } from 'node:path'
import { runCommand } from '../../scripts/fetch/command.ts'
import { NriNode } from '../../test/frontends/nri/node.ts'
import type { RuntimeEnd } from '../../test/frontends/nri/runtime.ts'
import { aligned, duration } from '../columns.ts'
import type { Cost } from '../command.ts'
import { describeMachine } from '../machine.ts'
import { ASKS, nextId, timed } from '../nri.ts'
import { kubeletWalk } from '../peers/kubelet-build.ts'
import { kubeletWalker } from '../peers/others.ts'
import { drawFirstMounts } from '../plot/first-mount.ts'
import { median } from '../statistics.ts'
import { makeTree } from '../tree.ts'
import { mountVolume, unmountVolume } from '../volume.ts'
import { BothWays, type Contender, takeTurns } from '../ways.ts'
import { type FirstMounts, WAYS, type Way } from './results.ts'

const RESULTS = resolve(import.meta.dirname, '../results')
/** By number of files. */
const ROUNDS: readonly (readonly [number, number])[] = [
  [1, 10],
  [10, 10],
  [100, 10],
  [1000, 10],
  [10_000, 6],
  [100_000, 3],
  [1_000_000, 2],
]
const CONTAINERS = 20
const UNMEASURED_CONTAINERS = 50
const NO_COST: Cost = { wall: 0, user: 0, system: 0, memory: 0 }

/**
 * What a volume's first mount takes by each way to its group, from one file to a million. Writes first-mount.json and .svg.
 * @returns a text for people
 */
export async function firstMounts(
  workDirectory: string,
  volumes: string,
  say: (text: string) => void,
): Promise<string> {
  const ways = new BothWays(`${workDirectory}/first-mount`, volumes)
  const kubelet = kubeletWalker(kubeletWalk(say)).walks['first walk']
  const nri = new NriNode()
  const results: FirstMounts = { machine: describeMachine(workDirectory), times: [] }
  try {
    await ways.untilListening()
    const end = await nri.serve()
    for (const [files, rounds] of ROUNDS) {
      const at = `${volumes}/of-${files}`
      const tree = `${at}/tree`
      mountVolume('ext4', at, files + 2000)
      makeTree(tree, files)
      const add = (way: Way, times: number[]) =>
        results.times.push({ way, files, milliseconds: times.map((time) => Number(time.toFixed(3))) })
      add('modekeep nri', await createContainers(nri, end, files, tree))
      const [, [, map]] = ways.pair((node) => node.mount(tree, { ownership: 'idmap' }))
      const [[, walk], [, walkInWorker]] = ways.pair((node) => node.mount(tree, {}))
      const contenders: Contender[] = [
        ['modekeep idmap, ready worker', map],
        ['modekeep keep, ready worker', walkInWorker],
        ['modekeep keep, own process', walk],
        ["kubelet's walk", () => kubelet?.(tree) ?? NO_COST],
      ]
      const unmeasured = files > 10_000 ? 0 : 3
      const costs = await takeTurns(contenders, rounds, { unmeasured, ...ways.turnsOfFirstMounts(at, tree) })
      for (const [way, all] of costs)
        add(
          way as Way,
          all.map(({ wall }) => wall),
        )
      unmountVolume(at)
      say(`${files.toLocaleString('en')} files: measured`)
    }
  } finally {
    await nri.end()
    await ways.close()
  }
  fs.mkdirSync(RESULTS, { recursive: true })
  fs.writeFileSync(`${RESULTS}/first-mount.json`, `${JSON.stringify(results, null, 2)}\n`)
  fs.writeFileSync(`${RESULTS}/first-mount.svg`, drawFirstMounts(results))
  say('Written: bench/results/first-mount.json and first-mount.svg')
  return table(results)
}

/** Milliseconds of each container's creation. Each volume has a pod of its own, whose number is that of its files. */
async function createContainers(node: NriNode, end: RuntimeEnd, files: number, tree: string): Promise<number[]> {
  const source = node.publish(files, tree)
  const times: number[] = []
  for (let at = -UNMEASURED_CONTAINERS; at < CONTAINERS; at++) {
    const took = await timed(end, node.request(files, ASKS, source, nextId()))
    if (at >= 0) times.push(took)
  }
  runCommand('umount', [source])
  return times
}

function table({ times }: FirstMounts): string {
  const medianOf = (way: Way, files: number) =>
    duration(median(times.find((one) => one.way === way && one.files === files)?.milliseconds ?? []))
  const header = ['files', ...WAYS]
  const rows = ROUNDS.map(([files]) => [files.toLocaleString('en'), ...WAYS.map((way) => medianOf(way, files))])
  return `${aligned([header, ...rows]).join('\n')}\n`
}
