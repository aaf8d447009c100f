import { escapeJson, escapeUnprintable } from '../../errors/escape.ts'
import { foldLine } from './wrap.ts'

/** One line without a newline. `render` makes its control characters printable. */
export type Line = string | { text: string; style: 'strong' | 'notice' | 'fault' }

const STYLES = { strong: '1', notice: '33', fault: '31' } as const

/**
 * Joins lines into one text. No file name can control the terminal; only `colour` adds escape sequences.
 * @param width of the terminal: longer lines continue on the next one, indented
 */
export function render(lines: readonly Line[], colour: boolean, width = Number.POSITIVE_INFINITY): string {
  return lines
    .flatMap((line) => {
      const [text, style] = typeof line === 'string' ? [line, undefined] : [line.text, STYLES[line.style]]
      const safe = foldLine(escapeUnprintable(text), width)
      return colour && style ? safe.map((part) => part && `\x1b[${style}m${part}\x1b[0m`) : safe
    })
    .map((line) => `${line}\n`)
    .join('')
}

/** Pads cells to the widest of their column. The last cell of a row is not padded, and may end in blanks of its own. */
export function alignColumns(rows: readonly (readonly string[])[], gap = '  '): string[] {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)))
  return rows.map((row) => {
    const last = row.findLastIndex((cell) => cell !== '')
    const cells = row.slice(0, last).map((cell, column) => cell.padEnd(widths[column] ?? 0))
    return [...cells, row[last]].join(gap)
  })
}

/** Quotes a path for a shell, if it needs quotes. */
export function quoteForShell(path: string): string {
  const text = escapeUnprintable(path)
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`
}

/**
 * Formats the `--json` output of a verb, or of an `error`: one document and a newline, with control characters escaped.
 * The apiVersion covers all documents of docs/commands.md, and changes with an incompatible change of any of them.
 */
export function formatJsonDocument<T extends { verb: string }>({ verb, ...facts }: T): string {
  const kind = verb.charAt(0).toUpperCase() + verb.slice(1)
  return `${escapeJson(JSON.stringify({ apiVersion: 'modekeep/v1', kind, ...facts }))}\n`
}
