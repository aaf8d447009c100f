import type { Ownership } from '../../ownership/inode/policy.ts'
import type { Difference } from '../actions/document.ts'
import { modeString } from '../actions/mode-string.ts'
import type { Line } from './line.ts'

/** What each inode is and becomes, as `ls -l` shows it; kubelet's rule beside it where there is one. */
export function differenceLines(differences: readonly Difference[], changed: number): Line[] {
  if (differences.length === 0) return []
  const shown = differences.length < changed ? `the first ${differences.length} of ${changed}` : 'all'
  const hasKubelet = differences.some(({ kubelet }) => kubelet !== null)
  const head = hasKubelet ? ['now', 'modekeep', 'kubelet', 'path'] : ['now', 'then', 'path']
  const rows = differences.map(({ before, after, kubelet, path, ...about }) => [
    ownership(about, before),
    ownership(about, after),
    ...(kubelet === null ? [] : [ownership(about, kubelet)]),
    path,
  ])
  const table = [head, ...rows]
  // The path is last, and may end in blanks of its own.
  const widths = head.slice(0, -1).map((_, column) => Math.max(...table.map((row) => row[column]?.length ?? 0)))
  return [
    { text: '' },
    { text: `Changes (${shown}), mode, owner and group:` },
    ...table.map((row) => ({
      text: `  ${row.map((text, column) => text.padEnd(widths[column] ?? 0)).join('   ')}`,
    })),
  ]
}

function ownership({ type, uid }: Pick<Difference, 'type' | 'uid'>, { mode, gid }: Ownership): string {
  return `${modeString(type, mode)} ${uid} ${gid}`
}
