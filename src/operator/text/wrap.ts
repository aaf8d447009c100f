/**
 * A text in lines of at most `width` characters, broken between words. A word that is longer has a line of its own, and
 * what stands in double quotes, a command to be copied, stays on one line where it fits there.
 */
export function wrapped(text: string, width: number): string[] {
  const lines: string[] = []
  for (const word of wordsOf(text, width)) {
    const line = lines.at(-1)
    if (line === undefined || line.length + 1 + word.length > width) lines.push(word)
    else lines[lines.length - 1] = `${line} ${word}`
  }
  return lines
}

function wordsOf(text: string, width: number): string[] {
  // A quote, with what is written to it before and behind; or what has no blank in it.
  const pieces = text.match(/(?:[^\s"]*"[^"]*"[^\s"]*)|\S+/g) ?? []
  return pieces.flatMap((piece) => (piece.length <= width ? [piece] : piece.split(' ')))
}
