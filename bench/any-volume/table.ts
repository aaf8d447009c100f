import { aligned, duration } from '../columns.ts'
import { median } from '../statistics.ts'
import type { AnyVolume } from './results.ts'

/** Medians, for people. */
export function table({ times }: AnyVolume): string {
  const rows = times.map(({ way, files, total, walk }) => [
    way,
    files.toLocaleString('en'),
    duration(median(total)),
    walk.length === 0 ? '' : duration(median(walk)),
  ])
  return `${aligned([['pod', 'files', 'until it runs', 'of that the walk'], ...rows]).join('\n')}\n`
}
