import type { Ownership } from '../../ownership/inode/policy.ts'
import type { InodeType } from '../actions/inode-type.ts'
import type { Difference } from '../actions/survey.ts'
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

const LETTERS: Readonly<Record<InodeType, string>> = {
  file: '-',
  directory: 'd',
  link: 'l',
  fifo: 'p',
  socket: 's',
  'block device': 'b',
  'character device': 'c',
}

/** As `ls -l` has it: `-rwSr-xr-t`. */
export function modeString(type: InodeType, mode: number): string {
  const special = [
    [0o4000, 's'],
    [0o2000, 's'],
    [0o1000, 't'],
  ] as const
  const triples = special.map(([bit, letter], index) => {
    const bits = mode >> (6 - 3 * index)
    const execute = bits & 1 ? 'x' : '-'
    const last = mode & bit ? (bits & 1 ? letter : letter.toUpperCase()) : execute
    return `${bits & 4 ? 'r' : '-'}${bits & 2 ? 'w' : '-'}${last}`
  })
  return LETTERS[type] + triples.join('')
}
