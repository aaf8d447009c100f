import { escapeJson, escapeUnprintable } from '../../errors/escape.ts'
import type { Ownership } from '../../ownership/inode/policy.ts'
import type { WalkReport } from '../../ownership/walk/report.ts'
import type { InodeType, OwnershipDifference } from '../node-state/survey.ts'

/** One line without a newline. `render` makes its control characters printable. */
export type OutputLine = string | { text: string; style: 'strong' | 'notice' | 'fault' }

const TERMINAL_STYLE_CODES = { strong: '1', notice: '33', fault: '31' } as const

/**
 * Joins lines into one text. No file name can control the terminal; only `colour` adds escape sequences.
 * @param width of the terminal: longer lines continue on the next one, indented
 */
export function formatOutputLines(
  lines: readonly OutputLine[],
  colour: boolean,
  width = Number.POSITIVE_INFINITY,
): string {
  return lines
    .flatMap((line) => {
      const [text, style] = typeof line === 'string' ? [line, undefined] : [line.text, TERMINAL_STYLE_CODES[line.style]]
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
  const kind = verb.replaceAll(/(?:^|-)([a-z])/g, (_, letter: string) => letter.toUpperCase())
  return `${escapeJson(JSON.stringify({ apiVersion: 'modekeep/v1', kind, ...facts }))}\n`
}

/**
 * Breaks a text between words into lines of at most `width` characters. A longer word gets a line of its own. A command in
 * quotes or backticks stays on one line if it fits, so that it can be copied.
 */
export function wrapText(text: string, width: number): string[] {
  const lines: string[] = []
  for (const word of splitWordsAndQuotes(text, width)) {
    const line = lines.at(-1)
    if (line === undefined || line.length + 1 + word.length > width) lines.push(word)
    else lines[lines.length - 1] = `${line} ${word}`
  }
  return lines
}

function splitWordsAndQuotes(text: string, width: number): string[] {
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
    const at = findLineBreak(rest, width, lines.length === 0 ? 0 : indent)
    if (at === undefined) break
    lines.push(rest.slice(0, at).trimEnd())
    rest = ' '.repeat(indent) + rest.slice(at).trimStart()
  }
  return [...lines, rest]
}

/** Finds the break of a line: the last blank that fits, or else the first one. @param indent no break before this column */
function findLineBreak(line: string, width: number, indent: number): number | undefined {
  const blanks = [...line.matchAll(/(?<=\S) +(?=\S)/g)].map(({ index }) => index).filter((at) => at > indent)
  const spans = [...line.matchAll(/"[^"]*"/g)].filter(([text]) => text.length <= width - indent)
  const isWithin = (at: number) => spans.some(({ index, 0: text }) => at > index && at < index + text.length)
  const open = blanks.filter((at) => !isWithin(at))
  return open.findLast((at) => at <= width) ?? open[0] ?? blanks[0]
}

/** A column, and how its cells are cut if the terminal is too narrow. */
export interface TableColumn {
  head: string
  /** The shortest useful length, and the cut part: the middle of a path, the end of a name. */
  cut?: { to: number; at: 'middle' | 'end' }
}

/**
 * Formats the rows of a table, the head first, in at most `width` characters if cutting columns suffices. The widest
 * column is cut first.
 */
export function formatTable(
  columns: readonly TableColumn[],
  rows: readonly (readonly string[])[],
  width = Number.POSITIVE_INFINITY,
): string[] {
  const all = [columns.map(({ head }) => head), ...rows]
  const widths = columns.map((_, at) => Math.max(...all.map((row) => row[at]?.length ?? 0)))
  const gaps = 2 * (columns.length - 1)
  for (let over = sumNumbers(widths) + gaps - width; over > 0; over--) {
    const [widest] = columns
      .flatMap(({ cut }, at) => (cut && (widths[at] ?? 0) > cut.to ? [at] : []))
      .sort((one, other) => (widths[other] ?? 0) - (widths[one] ?? 0))
    if (widest === undefined) break
    widths[widest] = (widths[widest] ?? 0) - 1
  }
  const fit = (cell: string, at: number) => {
    const room = widths[at] ?? 0
    return columns[at]?.cut?.at === 'end' ? cutTextEnd(cell, room) : cutTextMiddle(cell, room)
  }
  return alignColumns(all.map((row) => row.map(fit)))
}

const sumNumbers = (numbers: readonly number[]) => numbers.reduce((total, number) => total + number, 0)

function cutTextEnd(text: string, length: number): string {
  return text.length <= length ? text : `${text.slice(0, length - 1)}…`
}

/** Cuts the middle, and keeps more of the end, because paths share their beginning. */
export function cutTextMiddle(text: string, length: number): string {
  if (text.length <= length) return text
  const before = Math.floor((length - 1) / 3)
  return `${text.slice(0, before)}…${text.slice(text.length - (length - 1 - before))}`
}

/** On a terminal with fewer columns, tables omit some of their own. */
const NARROW_TERMINAL_COLUMNS = 70

/** A column of a table of items. */
export interface ItemColumn<Item> extends TableColumn {
  of(item: Item): string
  /** Shown only with `-o wide`, or only if the terminal is not narrow. */
  only?: 'wide' | 'not narrow'
}

/** How much of a table is shown. @property width of the terminal; undefined: as wide as the content */
export interface TableOptions {
  form?: string | undefined
  width?: number | undefined
}

/** Returns the width that limits a table, and whether its narrow columns alone fit. */
export function measureTable({ form, width: terminal }: TableOptions) {
  const width = form === 'wide' ? undefined : terminal
  return { isWide: form === 'wide', width, isNarrow: (width ?? NARROW_TERMINAL_COLUMNS) < NARROW_TERMINAL_COLUMNS }
}

/** Formats a row for each item, with its remarks below. */
export function formatItemTable<Item>(
  items: readonly Item[],
  columns: readonly ItemColumn<Item>[],
  options: TableOptions,
  listRemarks: (item: Item) => readonly OutputLine[],
): OutputLine[] {
  const { isWide, width, isNarrow } = measureTable(options)
  const shown = columns.filter(({ only }) => only === undefined || (only === 'wide' ? isWide : !isNarrow))
  const cells = items.map((item) => shown.map(({ of }) => of(item)))
  const [head = '', ...rows] = formatTable(shown, cells, width)
  const below = items.map(listRemarks)
  return [{ text: head, style: 'strong' }, ...rows.flatMap((text, at) => [text, ...(below[at] ?? [])])]
}

const AGE_UNITS_MS = { d: 86_400_000, h: 3_600_000, m: 60_000, s: 1000 }

/** Formats an age in its largest unit, like kubectl. */
export function formatAge(milliseconds: number): string {
  const [unit, size] = Object.entries(AGE_UNITS_MS).find(([, length]) => milliseconds >= length) ?? [
    's',
    AGE_UNITS_MS.s,
  ]
  return `${Math.max(0, Math.floor(milliseconds / size))}${unit}`
}

/** Returns the number of inodes that a walk skipped. */
export function countSkippedInodes({ left }: WalkReport): number {
  return Object.values(left).reduce((sum, { count }) => sum + count, 0)
}

/** Formats the reasons for skipped inodes, with examples. */
export function formatSkippedInodes({ left }: WalkReport): OutputLine[] {
  return Object.entries(left).map(([reason, { count, examples }]) => {
    const names = examples.join(', ') + (count > examples.length ? ', …' : '')
    return { text: `  left alone, ${reason}: ${count} (${names})`, style: 'notice' }
  })
}

/** Formats each inode before and after, like `ls -l`, and kubelet's result if there is one. */
export function formatOwnershipDifferences(differences: readonly OwnershipDifference[], changed: number): OutputLine[] {
  if (differences.length === 0) return []
  const shown = differences.length < changed ? `the first ${differences.length} of ${changed}` : 'all'
  const hasKubelet = differences.some(({ kubelet }) => kubelet !== null)
  const head = hasKubelet ? ['now', 'modekeep', 'kubelet', 'path'] : ['now', 'then', 'path']
  const rows = differences.map(({ before, after, kubelet, path, type, uid }) => {
    const rules = [before, after, ...(kubelet === null ? [] : [kubelet])]
    return [...rules.map(({ mode, gid }: Ownership) => `${formatFileMode(type, mode)} ${uid} ${gid}`), path]
  })
  const table = alignColumns([head, ...rows], '   ').map((row) => `  ${row}`)
  return ['', `Changes (${shown}), mode, owner and group:`, ...table]
}

/** Formats type and mode like `ls -l`: `-rwSr-xr-t`. */
export function formatFileMode(type: InodeType, mode: number): string {
  const triples = ['s', 's', 't'].map((special, index) => {
    const bits = mode >> (6 - 3 * index)
    const isSpecial = mode & (0o4000 >> index)
    const last = bits & 1 ? (isSpecial ? special : 'x') : isSpecial ? special.toUpperCase() : '-'
    return `${bits & 4 ? 'r' : '-'}${bits & 2 ? 'w' : '-'}${last}`
  })
  const letter = type === 'file' ? '-' : type === 'fifo' ? 'p' : type.charAt(0)
  return letter + triples.join('')
}
