// Control characters (C0 and C1), format characters (with bidirectional overrides), unassigned ones, and line separators.
const UNPRINTABLE_CHARACTERS = /[\p{C}\p{Zl}\p{Zp}]/gu

// Matches most texts. The expression above is large and is compiled at its first use.
const PRINTABLE_ASCII_TEXT = /^[ -~]*$/

/**
 * Escapes characters that could control a terminal or reorder a line, as `\u{1b}`. Every text of another author passes through it
 * before people read it.
 */
export function escapeUnprintable(text: string): string {
  if (PRINTABLE_ASCII_TEXT.test(text)) return text
  return text.replace(UNPRINTABLE_CHARACTERS, (character) => `\\u{${character.codePointAt(0)?.toString(16)}}`)
}

/** Escapes unprintable characters of JSON on one line. A parser reads the same value. */
export function escapeJson(json: string): string {
  if (PRINTABLE_ASCII_TEXT.test(json)) return json
  const escaped = (unit: string) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`
  // `.` without the flag u matches each half of a surrogate pair separately.
  return json.replace(UNPRINTABLE_CHARACTERS, (character) => character.replaceAll(/./gs, escaped))
}
