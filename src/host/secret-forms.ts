/** So many bytes of a secret are masked wherever they appear, also without the rest of it. */
const WINDOW = 8
// Shorter ones say nothing, and are found everywhere.
const SHORTEST_LINE = 4
const SHORTEST_SECRET = 3

/** Bytes that the longest piece of a form can take: of a window, or of a secret that is shorter than that. */
export const LONGEST_PIECE = 8 * WINDOW

/** One way to write a secret: folded bytes, each one character. */
export interface Form {
  readonly text: string
  /** Where the signs begin that stand for one byte each, and where the last one ends. */
  readonly signs: readonly number[]
}

/** One for all ways to write a letter, and for what base64 and addresses write in two ways. Its length stays. */
export function folded(bytes: string): string {
  return bytes.toLowerCase().replace(/[+-]/g, ' ').replaceAll('_', '/')
}

/** Every piece of a form that gives something away: all of its windows, or all of a short one. */
export function* piecesOf({ text, signs }: Form): Generator<string> {
  const last = Math.max(0, signs.length - 1 - WINDOW)
  for (let index = 0; index <= last; index++) yield text.slice(signs[index], signs[index + WINDOW] ?? text.length)
}

/** Every way in which a program may repeat a secret. Addresses are no form: an output is read without their %XX too. */
export function formsOf(secrets: readonly Uint8Array[]): Form[] {
  const forms = secrets.flatMap((secret) => formsOfOne(Buffer.from(secret)))
  const long = forms.filter(({ text }) => text.length >= SHORTEST_SECRET)
  return [...new Map(long.map((form) => [form.text, form])).values()]
}

function formsOfOne(secret: Buffer): Form[] {
  const text = secret.toString()
  const bytes = secret.toString('latin1')
  const base64 = secret.toString('base64')
  const lines = bytes.split(/[\r\n]+/).filter((line) => line.length >= SHORTEST_LINE)
  return [
    form(bytes),
    // Folding knows the letters of ASCII alone.
    form(latin1(text.toUpperCase())),
    form(latin1(text.toLowerCase())),
    ...lines.map((line) => form(line)),
    form(base64),
    form(base64.replace(/=+$/, '')),
    ...[0, 1, 2].map((offset) => form(inBase64(secret, offset))),
    form(bytes, hexOf),
    form(bytes, (byte) => (/[ -~]/.test(byte) ? byte : `\\${byte.charCodeAt(0).toString(8).padStart(3, '0')}`)),
    form(bytes, (byte) => (/[ -~]/.test(byte) ? byte : `\\x${hexOf(byte)}`)),
    form(text, (character) => latin1(JSON.stringify(character).slice(1, -1))),
    form(text, (character) => latin1(character === "'" ? "'\\''" : character)),
    form(text, (character) => latin1(MARKUP[character] ?? character)),
    // mount.cifs(8) doubles commas for the kernel.
    form(bytes, (byte) => (byte === ',' ? ',,' : byte)),
  ]
}

const MARKUP: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' }

const latin1 = (text: string) => Buffer.from(text).toString('latin1')
const hexOf = (byte: string) => byte.charCodeAt(0).toString(16).padStart(2, '0')

function form(text: string, write = (character: string) => character): Form {
  const signs = [0]
  let written = ''
  for (const character of text) {
    written += write(character)
    signs.push(written.length)
  }
  return { text: folded(written), signs }
}

/** Of base64 of a text that holds the secret, what depends on the secret alone. */
function inBase64(secret: Buffer, offset: number): string {
  const whole = Buffer.concat([Buffer.alloc(offset), secret])
    .toString('base64')
    .replace(/=+$/, '')
  const isRagged = (offset + secret.length) % 3 !== 0
  const piece = whole.slice(Math.ceil((offset * 8) / 6), isRagged ? -1 : undefined)
  return piece.length >= WINDOW ? piece : ''
}
