/**
 * A text in lines of at most `width` characters, broken between words. A word that is longer has a line of its own, and
 * what stands in double quotes, a command to be copied, stays on one line where it fits there.
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
  // A quote, with what is written to it before and behind; or what has no blank in it.
  const pieces = text.match(/(?:[^\s"]*"[^"]*"[^\s"]*)|\S+/g) ?? []
  return pieces.flatMap((piece) => (piece.length <= width ? [piece] : piece.split(' ')))
}

/**
 * A line as lines of at most `width` characters; blanks within it stay as they are. A word that is longer, such as a path,
 * stays whole, to be copied; so does what stands in double quotes where it fits a line of its own.
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

/** Where a line is broken: at the last blank that fits, or the first one. @param indent where its text begins at least */
function findBreak(line: string, width: number, indent: number): number | undefined {
  const blanks = [...line.matchAll(/(?<=\S) +(?=\S)/g)].map(({ index }) => index).filter((at) => at > indent)
  const spans = [...line.matchAll(/"[^"]*"/g)].filter(([text]) => text.length <= width - indent)
  const isWithin = (at: number) => spans.some(({ index, 0: text }) => at > index && at < index + text.length)
  const open = blanks.filter((at) => !isWithin(at))
  return open.findLast((at) => at <= width) ?? open[0] ?? blanks[0]
}
