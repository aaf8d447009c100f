import { HEADLINE } from './options.ts'
import { type Case, type Measurement, ratioOf, YARDSTICK } from './results.ts'

// Ratios to reach, the journal included.
const TARGETS: readonly { case: Case; peer: string; atMost: number }[] = [
  { case: 'first walk', peer: 'modekeep keep', atMost: 0.6 },
  { case: 'first walk', peer: 'modekeep grant', atMost: 0.8 },
  { case: 'nothing to do', peer: 'modekeep keep', atMost: 0.25 },
  { case: 'nothing to do', peer: 'modekeep grant', atMost: 0.25 },
  { case: 'repeated mount', peer: 'modekeep', atMost: 0.75 },
]

/** One line per target: `met`, `not met`, or `not measured`. */
export function targetLines(measurements: readonly Measurement[]): string[] {
  return TARGETS.map((target) => {
    const ratio = ratioOf(measurements, { ...target, ...HEADLINE })
    const what = `${target.peer}, ${target.case}`.padEnd(31)
    const goal = `at most ${target.atMost.toFixed(2)} of ${YARDSTICK[target.case]}`.padEnd(31)
    if (ratio === undefined) return `${what} ${goal} not measured`
    return `${what} ${goal} ${ratio.toFixed(2)}  ${ratio <= target.atMost ? 'met' : 'not met'}`
  })
}
