import { aligned, duration } from '../columns.ts'
import { median } from '../statistics.ts'
import type { AnyVolume } from './results.ts'

/** Medians, for people. */
export function table({ times, groupsAsked }: AnyVolume): string {
  const rows = times.map(({ way, files, total, walk }) => [
    way,
    files.toLocaleString('en'),
    duration(median(total)),
    walk.length === 0 ? '' : duration(median(walk)),
  ])
  const head = ['pod', 'files', 'until it runs', 'of that the walk']
  const asked = `The runtime tells a pod's groups over CRI in ${median(groupsAsked).toFixed(1)} ms (median of ${groupsAsked.length}).`
  return `${aligned([head, ...rows]).join('\n')}\n${asked}\n`
}
