import { type AnyVolume, WAYS } from '../any-volume/results.ts'
import { duration } from '../columns.ts'
import { median } from '../statistics.ts'
import { chart } from './chart.ts'

/** From a pod's volume to its running container, a line for each way to its group. */
export function drawAnyVolume({ times, machine, containerd }: AnyVolume): string {
  const lines = WAYS.flatMap((way) => {
    const points = times
      .filter((one) => one.way === way)
      .map(({ files, total }) => [files, median(total) / 1000] as const)
      .sort(([a], [b]) => a - b)
    const last = points.at(-1)
    if (last === undefined) return []
    return [{ name: way, note: `${duration(last[1] * 1000)} at ${last[0].toLocaleString('en')} files`, points }]
  })
  return chart(
    {
      title: `A pod on another driver's volume: ext4, containerd ${containerd}, ${machine.cores} cores, ${machine.CPU}`,
      x: 'files in the volume (number)',
      y: 'until the container runs (seconds)',
    },
    lines,
  )
}
