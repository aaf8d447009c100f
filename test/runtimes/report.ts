import type { Outcome } from './on-runtime.ts'

/** How each case ended on each runtime; then what went wrong, and why something is missing. */
export function report(outcomes: readonly Outcome[], lacking: readonly string[]): string {
  const names = [...new Set(outcomes.flatMap(({ results }) => results.map(({ name }) => name)))]
  const resultOf = (outcome: Outcome, name: string) => outcome.results.find((result) => result.name === name)
  const rows = names.map((name) => [
    name,
    ...outcomes.map((outcome) => {
      const result = resultOf(outcome, name)
      return result === undefined ? 'not run' : (result.failure?.split('\n')[0] ?? result.seen ?? '')
    }),
  ])
  const head = ['case', ...outcomes.map(({ containerd, runc }) => `containerd ${containerd}, runc ${runc}`)]
  const lines = rows.map(
    ([name = '', ...cells]) => `${name}\n${cells.map((cell, at) => `  ${head[at + 1]}: ${cell}`).join('\n')}`,
  )
  const failures = outcomes.flatMap(({ containerd, results }) =>
    results.flatMap(({ name, failure }) =>
      failure === undefined ? [] : [`\nFAILED ${name}, containerd ${containerd}\n${failure}\n`],
    ),
  )
  const unable = outcomes.flatMap((one) => one.unable.map((why) => `${why}, this is ${one.containerd}`))
  const skipped = [...lacking, ...unable].map((why) => `\nskipped: ${why}\n`)
  return [...lines, ...failures, ...skipped].join('\n')
}
