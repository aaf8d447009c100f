import type { WalkReport } from '../../ownership/walk/report.ts'
import type { Line } from './line.ts'

/** How many inodes a walk left alone. */
export function leftCount({ left }: WalkReport): number {
  return Object.values(left).reduce((sum, { count }) => sum + count, 0)
}

/** Why, with examples. */
export function leftLines({ left }: WalkReport): Line[] {
  return Object.entries(left).map(([reason, { count, examples }]) => {
    // The directory itself has no path in it.
    const names = examples.map((path) => path || '.').join(', ') + (count > examples.length ? ', …' : '')
    return { text: `  left alone, ${reason}: ${count} (${names})`, style: 'notice' as const }
  })
}
