import { aligned, duration } from './columns.ts'
import { type Cost, pause } from './command.ts'
import { kubeletWalk } from './peers/kubelet-build.ts'
import { BARE_CALLERS, kubeletWalker, scriptCaller } from './peers/others.ts'
import { median } from './statistics.ts'
import { makeTree, resetTree } from './tree.ts'
import { mountVolume, settle } from './volume.ts'
import { BothWays, type Contender, MIN_AGE_MS, type Turns, takeTurns } from './ways.ts'

/** By number of files. */
const WALK_ROUNDS: readonly (readonly [number, number])[] = [
  [10, 20],
  [1000, 20],
  [10_000, 8],
]
const RESTORED_FILES = 1000
const CALL_ROUNDS = 20

/**
 * What a call for a small volume takes: made by a process of its own, by the worker of `heal --watch --answer-calls`, and
 * kubelet's walk of the same tree. A text for people.
 */
export async function smallVolumes(
  workDirectory: string,
  volumes: string,
  say: (text: string) => void,
): Promise<string> {
  const ways = new BothWays(`${workDirectory}/small`, volumes)
  const { own } = ways
  const kubelet = kubeletWalker(kubeletWalk(say))
  const at = `${volumes}/small`
  mountVolume('ext4', at, 20_000)
  await ways.untilListening()
  try {
    const rows: string[][] = []
    for (const [files, rounds] of WALK_ROUNDS) {
      const tree = `${at}/of-${files}`
      makeTree(tree, files)
      const walk = kubelet.walks['first walk']
      const contenders: Contender[] = [
        ...ways.pair((node) => node.mount(tree, {})),
        ["kubelet's walk", () => walk?.(tree) ?? { wall: 0, user: 0, system: 0, memory: 0 }],
      ]
      rows.push(...(await measure(`first walk, ${files} files`, contenders, rounds, ways.turnsOfFirstMounts(at, tree))))
      say(`first walk, ${files} files: measured`)
    }
    const tree = `${at}/of-${RESTORED_FILES}`
    const prepare = () => {
      settle(at)
      pause(MIN_AGE_MS)
    }
    own.forget()
    resetTree(tree)
    const both = ways.pair((node) => add(node.mount(tree, { restoreOnUnmount: 'true' }), node.unmount()))
    rows.push(
      ...(await measure(`restoreOnUnmount, ${RESTORED_FILES} files, both calls`, both, CALL_ROUNDS, { prepare })),
    )
    rows.push(
      ...(await measure(
        'init',
        [...ways.pair((node) => node.call('init')), ...BARE_CALLERS.map(asContender('')).slice(0, 1)],
        CALL_ROUNDS,
      )),
    )
    const script = scriptCaller(`${workDirectory}/script/v`)
    own.mount(tree, {})
    const repeats = [...ways.pair((node) => node.mount(tree, {})), asContender(tree)(script)]
    rows.push(...(await measure('repeated mount', repeats, CALL_ROUNDS)))
    script.finish?.()
    ways.unmount()
    return `${aligned([['medians', '', 'wall', '', 'processor', ''], ...rows]).join('\n')}\n`
  } finally {
    await ways.close()
  }
}

const asContender =
  (tree: string) =>
  ({ name, call }: { name: string; call(tree: string): Cost }): Contender => [name, () => call(tree)]

function add(one: Cost, other: Cost): Cost {
  const memory = Math.max(one.memory, other.memory)
  return { wall: one.wall + other.wall, user: one.user + other.user, system: one.system + other.system, memory }
}

/** A row for each contender. Ratios are to the first one. */
async function measure(
  what: string,
  contenders: readonly Contender[],
  rounds: number,
  around: Turns = {},
): Promise<string[][]> {
  const costs = await takeTurns(contenders, rounds, around)
  const wallOf = (all: readonly Cost[]) => median(all.map(({ wall }) => wall))
  const processorOf = (all: readonly Cost[]) => median(all.map(({ user, system }) => user + system))
  const [first = []] = costs.values()
  return [...costs].map(([name, all], at) => [
    at === 0 ? what : '',
    name,
    duration(wallOf(all)),
    (wallOf(all) / wallOf(first)).toFixed(2),
    duration(processorOf(all)),
    (processorOf(all) / processorOf(first)).toFixed(2),
  ])
}
