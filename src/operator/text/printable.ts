/** Of every shape that docs/commands.md has. It changes where a program that reads one has to change. */
const API_VERSION = 'modekeep/v1'

// Control, format (bidirectional overrides among them), unassigned, and what ends a line without being a newline.
const UNPRINTABLE = /[\p{C}\p{Zl}\p{Zp}]/gu

/** Text that cannot drive a terminal, whatever a file is called: what does not print reads `\u{1b}`. */
export function printable(text: string): string {
  return text.replace(UNPRINTABLE, (character) => `\\u{${character.codePointAt(0)?.toString(16)}}`)
}

/** As a shell takes it. */
export function shellQuoted(path: string): string {
  const text = printable(path)
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`
}

/** What `--json` prints of a verb, or of an `error`: one document and a newline, safe to look at too. */
export function jsonDocument<T extends { verb: string }>({ verb, ...facts }: T): string {
  const kind = verb.charAt(0).toUpperCase() + verb.slice(1)
  return `${jsonText(JSON.stringify({ apiVersion: API_VERSION, kind, ...facts }))}\n`
}

/** JSON on one line that cannot drive a terminal; it still means the same to a parser. */
export function jsonText(json: string): string {
  return json.replace(UNPRINTABLE, (character) =>
    Array.from({ length: character.length }, (_, index) => unicodeEscape(character.charCodeAt(index))).join(''),
  )
}

function unicodeEscape(unit: number): string {
  return `\\u${unit.toString(16).padStart(4, '0')}`
}
