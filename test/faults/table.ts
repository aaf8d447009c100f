import type { Result, Row } from './matrix.ts'

const TITLES = ['command', 'system calls', 'fault', 'tried', 'survived']
const IS_NUMBER = [false, true, false, true, true]

/** An aligned table, what was not survived, and one closing line. */
export function table({ rows, failures, seconds }: Result): string {
  const cells = rows.map(({ command, calls, fault, tried, survived }: Row) => [command, calls, fault, tried, survived])
  const lines = [TITLES, ...cells].map((row) => row.map(String))
  const widths = TITLES.map((_, column) => Math.max(...lines.map((line) => line[column]?.length ?? 0)))
  const text = lines.map((line) =>
    line
      .map((cell, n) => align(cell, widths[n] ?? 0, IS_NUMBER[n] ?? false))
      .join('  ')
      .trimEnd(),
  )
  const sum = (what: (row: Row) => number) => rows.reduce((total, row) => total + what(row), 0)
  const closing = `${sum(({ tried }) => tried)} faults tried, ${sum(({ struck }) => struck)} struck a call, ${sum(({ survived }) => survived)} survived, ${failures.length} not, ${seconds.toFixed(0)} s`
  return `${text.join('\n')}\n${failures.map((failure) => `\nNOT SURVIVED ${failure}\n`).join('')}\n${closing}\n`
}

function align(cell: string, width: number, isNumber: boolean): string {
  return isNumber ? cell.padStart(width) : cell.padEnd(width)
}
