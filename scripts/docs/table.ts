/** A table of Markdown. A bar in a cell would begin another one. */
export function formatMarkdownTable(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`
  return [line(head), `|${'---|'.repeat(head.length)}`, ...rows.map(line)].join('\n')
}

export const formatMarkdownCode = (text: string) => `\`${text}\``

/** A page with `text` between its two marks. @throws {Error} for a page without them */
export function replaceBetweenMarks(page: string, [first, last]: readonly [string, string], text: string): string {
  const from = page.indexOf(first)
  const to = page.indexOf(last, from)
  if (from < 0 || to < 0) throw new Error(`the page has no place between ${first.trim()} and ${last.trim()}`)
  return `${page.slice(0, from + first.length)}\n${text}\n${page.slice(to)}`
}
