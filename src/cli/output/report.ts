import type { Ownership } from '../../ownership/inode/policy.ts'
import type { WalkReport } from '../../ownership/walk/report.ts'
import type { Difference, InodeType } from '../node-state/survey.ts'
import { alignColumns, type Line } from './output.ts'

/** Returns the number of inodes that a walk skipped. */
export function countSkippedInodes({ left }: WalkReport): number {
  return Object.values(left).reduce((sum, { count }) => sum + count, 0)
}

/** Formats the reasons for skipped inodes, with examples. */
export function formatSkippedInodes({ left }: WalkReport): Line[] {
  return Object.entries(left).map(([reason, { count, examples }]) => {
    const names = examples.join(', ') + (count > examples.length ? ', …' : '')
    return { text: `  left alone, ${reason}: ${count} (${names})`, style: 'notice' }
  })
}

/** Formats each inode before and after, like `ls -l`, and kubelet's result if there is one. */
export function formatDifferences(differences: readonly Difference[], changed: number): Line[] {
  if (differences.length === 0) return []
  const shown = differences.length < changed ? `the first ${differences.length} of ${changed}` : 'all'
  const hasKubelet = differences.some(({ kubelet }) => kubelet !== null)
  const head = hasKubelet ? ['now', 'modekeep', 'kubelet', 'path'] : ['now', 'then', 'path']
  const rows = differences.map(({ before, after, kubelet, path, type, uid }) => {
    const rules = [before, after, ...(kubelet === null ? [] : [kubelet])]
    return [...rules.map(({ mode, gid }: Ownership) => `${formatMode(type, mode)} ${uid} ${gid}`), path]
  })
  const table = alignColumns([head, ...rows], '   ').map((row) => `  ${row}`)
  return ['', `Changes (${shown}), mode, owner and group:`, ...table]
}

/** Formats type and mode like `ls -l`: `-rwSr-xr-t`. */
export function formatMode(type: InodeType, mode: number): string {
  const triples = ['s', 's', 't'].map((special, index) => {
    const bits = mode >> (6 - 3 * index)
    const isSpecial = mode & (0o4000 >> index)
    const last = bits & 1 ? (isSpecial ? special : 'x') : isSpecial ? special.toUpperCase() : '-'
    return `${bits & 4 ? 'r' : '-'}${bits & 2 ? 'w' : '-'}${last}`
  })
  const letter = type === 'file' ? '-' : type === 'fifo' ? 'p' : type.charAt(0)
  return letter + triples.join('')
}
