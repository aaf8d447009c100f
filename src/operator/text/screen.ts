/**
 * A text as the whole of a terminal, written over what was there: no line is shown empty first, so nothing flickers.
 * @param rows how many lines it has
 */
export function formatScreen(text: string, rows: number): string {
  const lines = text.split('\n').slice(0, -1)
  const isTooLong = lines.length > rows - 1
  const shown = isTooLong ? [...lines.slice(0, rows - 2), `… ${lines.length - rows + 2} more lines`] : lines
  return `\x1b[H${shown.map((line) => `${line}\x1b[K\n`).join('')}\x1b[J`
}
