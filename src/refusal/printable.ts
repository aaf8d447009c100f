// Control (C0 and C1), format (bidirectional overrides among them), unassigned, and what ends a line without being a newline.
const UNPRINTABLE = /[\p{C}\p{Zl}\p{Zp}]/gu

// Most texts: the expression above is large, and is compiled when it is first used.
const PLAIN = /^[ -~]*$/

/** Escapes what could drive a terminal or reorder a line, as `\u{1b}`. All that people read of others' texts goes through it. */
export function printable(text: string): string {
  if (PLAIN.test(text)) return text
  return text.replace(UNPRINTABLE, (character) => `\\u{${character.codePointAt(0)?.toString(16)}}`)
}

/** The same of JSON on one line, which still means the same to a parser. */
export function jsonText(json: string): string {
  if (PLAIN.test(json)) return json
  const escaped = (unit: string) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`
  // Without the flag u each half of a surrogate pair is one of its own.
  return json.replace(UNPRINTABLE, (character) => character.replaceAll(/./gs, escaped))
}
