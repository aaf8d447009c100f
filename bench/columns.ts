/** Three significant digits and a unit. */
export function duration(milliseconds: number): string {
  const [value, unit] = milliseconds < 1000 ? [milliseconds, 'ms'] : [milliseconds / 1000, 's']
  const digits = value < 10 ? 2 : value < 100 ? 1 : 0
  return `${value.toFixed(digits)} ${unit}`
}

/** Rows of equally many cells, the first column to the left, the others to the right. */
export function aligned(rows: readonly (readonly string[])[]): string[] {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)))
  return rows.map((row) =>
    row
      .map((cell, column) => (column ? cell.padStart(widths[column] ?? 0) : cell.padEnd(widths[column] ?? 0)))
      .join('  '),
  )
}

/** A table of a page, the first row its header. */
export function markdownTable([header = [], ...rows]: readonly (readonly string[])[]): string[] {
  return [header, header.map(() => '---'), ...rows].map((row) => `| ${row.join(' | ')} |`)
}
