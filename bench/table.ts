import { aligned, duration, markdownTable } from './columns.ts'
import { nodeTable } from './node/table.ts'
import { IN_MEMORY } from './peers/index.ts'
import { type Case, type Measurement, medianOf, type Quantity, type Results, ratio, WALKS, wall } from './results.ts'
import { headline, TARGET_COLUMNS, targetRows } from './targets.ts'
import { nameOf, type Tree } from './trees.ts'

/** What the others are compared with; a survey with the last one. */
const YARDSTICKS = ['kubelet', 'chgrp, chmod', 'C, one thread', 'find -printf'] as const
const CALL_YARDSTICKS = ['node -e 0', 'modekeep init', 'bash+jq, repeated mount'] as const

/** Everything for people, the targets last on a terminal and first on a page. */
export function report(results: Results, markdown: boolean): string {
  const heading = (text: string) => (markdown ? `## ${text}` : text)
  const block = (lines: readonly string[]) => (markdown ? ['```', ...lines, '```', ''] : [...lines, ''])
  const { machine, measurements, trees, node, absent } = results
  const about = block(Object.entries(machine).map(([key, value]) => `${key.padEnd(10)} ${value}`))
  const targets = [TARGET_COLUMNS, ...targetRows(results)]
  const title = heading(`Targets, ${nameOf(headline(results))}`)
  const target = markdown ? [title, '', ...markdownTable(targets), ''] : [title, ...aligned(targets), '']
  const rest: string[] = []
  for (const tree of trees) {
    const walks = rowsOf(measurements, tree, WALKS, YARDSTICKS)
    if (walks.length > 1) rest.push(heading(`${nameOf(tree)}: medians, and ratios of time`), ...block(aligned(walks)))
  }
  const calls = rowsOf(measurements, headline(results), ['call'], CALL_YARDSTICKS)
  if (calls.length > 1) rest.push(heading('Calls: medians, and ratios of time'), ...block(aligned(calls)))
  rest.push(...journalLine(measurements, headline(results)))
  if (node.length > 0) {
    rest.push(heading('A node with many mounts: median of a call, and ratio'), ...block(nodeTable(node)))
  }
  for (const { what, reason } of absent) rest.push(`absent: ${what}: ${reason}`, '')
  const parts = markdown ? ['# modekeep, benchmark', '', ...about, ...target, ...rest] : [...about, ...rest, ...target]
  return `${parts.join('\n').trimEnd()}\n`
}

/** A row for each case and peer: medians of what it cost, and the ratio of its time to each yardstick's. */
function rowsOf(
  all: readonly Measurement[],
  tree: Tree,
  cases: readonly Case[],
  possible: readonly string[],
): (readonly string[])[] {
  const yardsticks = possible.filter((peer) => all.some((one) => one.tree === nameOf(tree) && one.peer === peer))
  const rows = cases.flatMap((name) =>
    all
      .filter((one) => one.tree === nameOf(tree) && one.case === name)
      .map(({ peer }) => {
        const of = (quantity: Quantity, other = peer) => medianOf(all, tree, name, other, quantity)
        const ratios = yardsticks.map((other) => ratio(of(wall), of(wall, other))?.toFixed(2) ?? '–')
        const [user, system, memory] = [of((cost) => cost.user), of((cost) => cost.system), of((cost) => cost.memory)]
        const times = [of(wall), user, system].map((time) => duration(time ?? 0))
        return [name === 'call' ? peer : `${name}, ${peer}`, ...times, megabytes(memory ?? 0), ...ratios]
      }),
  )
  return [['', 'time', 'user', 'system', 'memory', ...yardsticks.map((name) => `/ ${name}`)], ...rows]
}

const megabytes = (kibibytes: number) => `${Math.round((kibibytes * 1024) / 1e6)} MB`

/** What of a first walk is waiting for the disk that has the journal. */
function journalLine(all: readonly Measurement[], tree: Tree): string[] {
  const [disk, memory] = ['modekeep keep', IN_MEMORY].map((peer) => medianOf(all, tree, 'first walk', peer))
  if (disk === undefined || memory === undefined) return []
  const share = Math.round((1 - memory / disk) * 100)
  return [`first walk keep: ${duration(disk)}; with its journal in memory ${duration(memory)}, ${share} % less`, '']
}
