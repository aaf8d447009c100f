import type { StatusCommand } from '../actions/status.ts'
import type { Line } from '../text/output.ts'

/** On a terminal with fewer columns, tables omit some of their own. */
export const NARROW_COLUMNS = 70

export interface StatusTableOptions extends Pick<StatusCommand, 'form' | 'selection'> {
  width?: number | undefined
}

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
