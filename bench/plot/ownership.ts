import { duration } from '../columns.ts'
import { medianOf, type Results } from '../results.ts'
import { nameOf, usual } from '../trees.ts'
import { chart } from './chart.ts'

/** The order of the lines: the first is the one that does not grow. */
const LINES = {
  'modekeep idmap': 'modekeep idmap',
  'modekeep keep': 'modekeep keep',
  'modekeep grant': 'modekeep grant',
  kubelet: 'kubelet',
  'chgrp, chmod': 'chgrp + chmod',
}

/** A new mount's walk on ext4, a line for each way; undefined where no tree was measured. */
export function drawOwnership({ measurements, trees, machine }: Results): string | undefined {
  const drawn = trees.filter((tree) => nameOf(tree) === nameOf(usual('ext4', tree.files)))
  const lines = Object.entries(LINES).flatMap(([peer, name]) => {
    const times = drawn
      .flatMap((tree): [number, number][] => {
        const time = medianOf(measurements, tree, 'first walk', peer)
        return time === undefined ? [] : [[tree.files, time]]
      })
      .sort(([a], [b]) => a - b)
    const last = times.at(-1)
    if (!last) return []
    const note = `${duration(last[1])} at ${last[0].toLocaleString('en')} files`
    return { name, note, points: times.map(([files, time]) => [files, time / 1000] as const) }
  })
  if (lines.length === 0) return undefined
  return chart(
    {
      title: `A volume's first mount with a group: ext4, ${machine.cores} cores, ${machine.CPU}`,
      x: 'files in the volume (number)',
      y: 'time until the group is given (seconds)',
    },
    lines,
  )
}
