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
const NARROW_COLUMNS = 70

/** A column of a table of items. */
export interface ItemColumn<Item> extends Column {
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
  return { isWide: form === 'wide', width, isNarrow: (width ?? NARROW_COLUMNS) < NARROW_COLUMNS }
}

/** Formats a row for each item, with its remarks below. */
export function formatItems<Item>(
  items: readonly Item[],
  columns: readonly ItemColumn<Item>[],
  options: TableOptions,
  listRemarks: (item: Item) => readonly Line[],
): Line[] {
  const { isWide, width, isNarrow } = measureTable(options)
  const shown = columns.filter(({ only }) => only === undefined || (only === 'wide' ? isWide : !isNarrow))
  const cells = items.map((item) => shown.map(({ of }) => of(item)))
  const [head = '', ...rows] = formatTable(shown, cells, width)
  const below = items.map(listRemarks)
  return [{ text: head, style: 'strong' }, ...rows.flatMap((text, at) => [text, ...(below[at] ?? [])])]
}

const UNITS = { d: 86_400_000, h: 3_600_000, m: 60_000, s: 1000 }

/** Formats an age in its largest unit, like kubectl. */
export function formatAge(milliseconds: number): string {
  const [unit, size] = Object.entries(UNITS).find(([, length]) => milliseconds >= length) ?? ['s', UNITS.s]
  return `${Math.max(0, Math.floor(milliseconds / size))}${unit}`
}
