import { aligned, duration } from '../columns.ts'
import { median } from '../statistics.ts'
import { NODE_CALLS, NODE_SIZES, NODE_TARGETS, type NodeCall, type NodeMeasurement, type NodeSize } from './calls.ts'

const timeOf = (all: readonly NodeMeasurement[], call: NodeCall, mounts: NodeSize) => {
  const found = all.find((one) => one.call === call && one.mounts === mounts)
  return found && median(found.milliseconds)
}

/** Rows of calls: the median on each node, and the ratio of the fullest to the emptiest. */
export function nodeTable(all: readonly NodeMeasurement[]): string[] {
  const header = ['mounts', ...NODE_SIZES.map((mounts) => mounts.toLocaleString('en')), 'ratio', '']
  const rows = NODE_CALLS.map((call) => {
    const times = NODE_SIZES.map((mounts) => timeOf(all, call, mounts))
    return [call, ...times.map((time) => (time === undefined ? '–' : duration(time))), ...verdict(call, times)]
  })
  return aligned([header, ...rows])
}

function verdict(call: NodeCall, times: readonly (number | undefined)[]): [string, string] {
  const [few, many] = [times[0], times.at(-1)]
  if (few === undefined || many === undefined) return ['–', '']
  const [ratio, target] = [many / few, NODE_TARGETS[call]]
  const goal = target === undefined ? '' : `at most ${target.toFixed(2)}  ${ratio <= target ? 'met' : 'not met'}`
  return [ratio.toFixed(2), goal]
}
