import type { Seen } from '../cases/case.ts'

export interface Result {
  name: string
  seconds: number
  seen?: Seen
  /** Why it failed. */
  failure?: string
}

const WIDTH = 46

/** The aligned table of all cases, then what went wrong and why something is missing. */
export function table(results: readonly Result[], skipped: number): string {
  const rows = results.map(({ name, seconds, seen, failure }) => [
    name,
    seen?.modekeep ?? failure?.split('\n')[0] ?? '',
    seen ? (seen.naive ?? '-') : '-',
    `${failure === undefined ? 'passed' : 'FAILED'} ${seconds.toFixed(0)} s`,
  ])
  const lines = [['case', 'modekeep', 'naive driver', 'verdict'], ...rows].map((row) => row.map((cell) => wrap(cell)))
  const widths = [0, 1, 2, 3].map((column) =>
    Math.max(...lines.flatMap((row) => row[column]?.map((text) => text.length) ?? [])),
  )
  const text = lines.map((row) => {
    const height = Math.max(...row.map((cell) => cell.length))
    return Array.from({ length: height }, (_, line) =>
      row
        .map((cell, column) => (cell[line] ?? '').padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    ).join('\n')
  })
  const failures = results.flatMap(({ name, failure }) =>
    failure === undefined ? [] : [`\nFAILED ${name}\n${failure}\n`],
  )
  const left = skipped === 0 ? '' : '\nSkipped: cases that --only does not name.\n'
  return `${text.join('\n\n')}\n${failures.join('')}${left}`
}

function wrap(text: string): string[] {
  const lines = ['']
  for (const word of text.split(' ')) {
    const last = lines.at(-1) ?? ''
    if (last !== '' && last.length + word.length >= WIDTH) lines.push(word)
    else lines[lines.length - 1] = last === '' ? word : `${last} ${word}`
  }
  return lines
}
