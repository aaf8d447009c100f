import { printable } from './printable.ts'

/** One line without its end; control characters in it are still to be made printable. */
export interface Line {
  text: string
  style?: 'strong' | 'notice' | 'fault'
}

const STYLES = { strong: '1', notice: '33', fault: '31' } as const

/** The lines as one text: no file name can drive the terminal, only `colour` brings escape sequences. */
export function render(lines: readonly Line[], colour: boolean): string {
  return lines
    .map(({ text, style }) => {
      const safe = printable(text)
      return colour && style && safe ? `\x1b[${STYLES[style]}m${safe}\x1b[0m\n` : `${safe}\n`
    })
    .join('')
}

/** Columns as wide as their widest cell; the last one is as long as it likes. */
export function aligned(rows: readonly (readonly string[])[]): string[] {
  const columns = Math.max(0, ...rows.map((row) => row.length))
  const widths = Array.from({ length: columns }, (_, column) =>
    Math.max(...rows.map((row) => row[column]?.length ?? 0)),
  )
  return rows.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  )
}
