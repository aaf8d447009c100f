import { jsonText, printable } from '../../refusal/printable.ts'
import { foldLine } from './wrap.ts'

/** One line without its end; control characters in it are still to be made printable. */
export type Line = string | { text: string; style: 'strong' | 'notice' | 'fault' }

const STYLES = { strong: '1', notice: '33', fault: '31' } as const

/**
 * The lines as one text: no file name can drive the terminal, only `colour` brings escape sequences.
 * @param width of the terminal: longer lines go on below, a bit farther to the right
 */
export function render(lines: readonly Line[], colour: boolean, width = Number.POSITIVE_INFINITY): string {
  return lines
    .flatMap((line) => {
      const [text, style] = typeof line === 'string' ? [line, undefined] : [line.text, STYLES[line.style]]
      const safe = foldLine(printable(text), width)
      return colour && style ? safe.map((part) => part && `\x1b[${style}m${part}\x1b[0m`) : safe
    })
    .map((line) => `${line}\n`)
    .join('')
}

/** Columns as wide as their widest cell; the last one is as long as it likes, and may end in blanks of its own. */
export function alignColumns(rows: readonly (readonly string[])[], gap = '  '): string[] {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)))
  return rows.map((row) => {
    const last = row.findLastIndex((cell) => cell !== '')
    const cells = row.slice(0, last).map((cell, column) => cell.padEnd(widths[column] ?? 0))
    return [...cells, row[last]].join(gap)
  })
}

/** As a shell takes it. */
export function quoteForShell(path: string): string {
  const text = printable(path)
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`
}

/**
 * What `--json` prints of a verb, or of an `error`: one document and a newline, safe to look at too. Its apiVersion, of
 * all shapes that docs/commands.md has, changes where a program that reads one has to change.
 */
export function formatJsonDocument<T extends { verb: string }>({ verb, ...facts }: T): string {
  const kind = verb.charAt(0).toUpperCase() + verb.slice(1)
  return `${jsonText(JSON.stringify({ apiVersion: 'modekeep/v1', kind, ...facts }))}\n`
}
