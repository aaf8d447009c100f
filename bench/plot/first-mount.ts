import { duration } from '../columns.ts'
import { type FirstMounts, WAYS } from '../first-mount/results.ts'
import { median } from '../statistics.ts'
import { chart } from './chart.ts'

/** A volume's first mount, a line for each way to its group. */
export function drawFirstMounts({ times, machine }: FirstMounts): string {
  const lines = WAYS.flatMap((way) => {
    const points = times
      .filter((one) => one.way === way)
      .map(({ files, milliseconds }) => [files, median(milliseconds) / 1000] as const)
      .sort(([a], [b]) => a - b)
    const [first, last] = [points[0], points.at(-1)]
    if (first === undefined || last === undefined) return []
    return [{ name: way, note: `${duration(first[1] * 1000)} to ${duration(last[1] * 1000)}`, points }]
  })
  return chart(
    {
      title: `A volume's first mount with a group: ext4, ${machine.cores} cores, ${machine.CPU}`,
      x: 'files in the volume (number)',
      y: 'time until the group is given (seconds)',
    },
    lines,
  )
}
