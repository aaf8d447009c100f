/**
 * Formats a text that overwrites a whole terminal. Lines are not cleared first, so nothing flickers.
 * @param rows number of lines of the terminal
 */
export function formatScreen(text: string, rows: number): string {
  const lines = text.split('\n').slice(0, -1)
  const isTooLong = lines.length > rows - 1
  const shown = isTooLong ? [...lines.slice(0, rows - 2), `… ${lines.length - rows + 2} more lines`] : lines
  return `\x1b[H${shown.map((line) => `${line}\x1b[K\n`).join('')}\x1b[J`
}
