/**
 * Breaks a text between words into lines of at most `width` characters. A longer word gets a line of its own. A command in
 * double quotes stays on one line if it fits, so that it can be copied.
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
  const pieces = text.match(/(?:[^\s"]*"[^"]*"[^\s"]*)|\S+/g) ?? []
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
