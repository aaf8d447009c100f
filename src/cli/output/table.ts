import { alignColumns, type Line } from './output.ts'

/** A column, and how its cells are cut if the terminal is too narrow. */
export interface Column {
  head: string
  /** The shortest useful length, and the cut part: the middle of a path, the end of a name. */
  cut?: { to: number; at: 'middle' | 'end' }
}

/**
 * Formats the rows of a table, the head first, in at most `width` characters if cutting columns suffices. The widest
 * column is cut first.
 */
export function formatTable(
  columns: readonly Column[],
  rows: readonly (readonly string[])[],
  width = Number.POSITIVE_INFINITY,
): string[] {
  const all = [columns.map(({ head }) => head), ...rows]
  const widths = columns.map((_, at) => Math.max(...all.map((row) => row[at]?.length ?? 0)))
  const gaps = 2 * (columns.length - 1)
  for (let over = sum(widths) + gaps - width; over > 0; over--) {
    const [widest] = columns
      .flatMap(({ cut }, at) => (cut && (widths[at] ?? 0) > cut.to ? [at] : []))
      .sort((one, other) => (widths[other] ?? 0) - (widths[one] ?? 0))
    if (widest === undefined) break
    widths[widest] = (widths[widest] ?? 0) - 1
  }
  const fit = (cell: string, at: number) => {
    const room = widths[at] ?? 0
    return columns[at]?.cut?.at === 'end' ? cutEnd(cell, room) : cutMiddle(cell, room)
  }
  return alignColumns(all.map((row) => row.map(fit)))
}

const sum = (numbers: readonly number[]) => numbers.reduce((total, number) => total + number, 0)

function cutEnd(text: string, length: number): string {
  return text.length <= length ? text : `${text.slice(0, length - 1)}…`
}

/** Cuts the middle, and keeps more of the end, because paths share their beginning. */
export function cutMiddle(text: string, length: number): string {
  if (text.length <= length) return text
  const before = Math.floor((length - 1) / 3)
  return `${text.slice(0, before)}…${text.slice(text.length - (length - 1 - before))}`
}

/** On a terminal with fewer columns, tables omit some of their own. */
export const NARROW_COLUMNS = 70

/** Adds the remarks below the rows of a table. @param rows the head first @param below remarks of each row after the head */
export function addRemarks([head = '', ...rows]: readonly string[], below: readonly (readonly Line[])[]): Line[] {
  return [{ text: head, style: 'strong' }, ...rows.flatMap((text, at) => [text, ...(below[at] ?? [])])]
}

const UNITS = { d: 86_400_000, h: 3_600_000, m: 60_000, s: 1000 }

/** Formats an age in its largest unit, like kubectl. */
export function formatAge(milliseconds: number): string {
  const [unit, size] = Object.entries(UNITS).find(([, length]) => milliseconds >= length) ?? ['s', UNITS.s]
  return `${Math.max(0, Math.floor(milliseconds / size))}${unit}`
}
