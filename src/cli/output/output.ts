import { escapeJson, escapeUnprintable } from '../../errors/escape.ts'

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

/**
 * Breaks a text between words into lines of at most `width` characters. A longer word gets a line of its own. A command in
 * quotes or backticks stays on one line if it fits, so that it can be copied.
 */
export function wrapText(text: string, width: number): string[] {
  const lines: string[] = []
  for (const word of splitWords(text, width)) {
    const line = lines.at(-1)
    if (line === undefined || line.length + 1 + word.length > width) lines.push(word)
    else lines[lines.length - 1] = `${line} ${word}`
  }
  return lines
}

function splitWords(text: string, width: number): string[] {
  // Matches a quoted part with adjacent characters, or a word without blanks.
  const pieces = text.match(/[^\s"`]*(?:"[^"]*"|`[^`]*`)[^\s"`]*|\S+/g) ?? []
  return pieces.flatMap((piece) => (piece.length <= width ? [piece] : piece.split(' ')))
}

/**
 * Breaks a line into lines of at most `width` characters, and keeps blanks within it. A longer word, such as a path, is not
 * broken, so that it can be copied; nor is a quoted part that fits a line of its own.
 */
export function foldLine(line: string, width: number): string[] {
  const lines: string[] = []
  const indent = Math.min((line.match(/^ */)?.[0].length ?? 0) + 4, Math.floor(width / 2))
  let rest = line
  while (rest.length > width) {
    const at = findBreak(rest, width, lines.length === 0 ? 0 : indent)
    if (at === undefined) break
    lines.push(rest.slice(0, at).trimEnd())
    rest = ' '.repeat(indent) + rest.slice(at).trimStart()
  }
  return [...lines, rest]
}

/** Finds the break of a line: the last blank that fits, or else the first one. @param indent no break before this column */
function findBreak(line: string, width: number, indent: number): number | undefined {
  const blanks = [...line.matchAll(/(?<=\S) +(?=\S)/g)].map(({ index }) => index).filter((at) => at > indent)
  const spans = [...line.matchAll(/"[^"]*"/g)].filter(([text]) => text.length <= width - indent)
  const isWithin = (at: number) => spans.some(({ index, 0: text }) => at > index && at < index + text.length)
  const open = blanks.filter((at) => !isWithin(at))
  return open.findLast((at) => at <= width) ?? open[0] ?? blanks[0]
}
