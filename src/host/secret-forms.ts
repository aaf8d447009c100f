/** Any run of this many bytes of a secret is masked, even without the rest. */
const WINDOW_BYTES = 8
// Shorter ones reveal nothing and match everywhere.
const MIN_LINE_LENGTH = 4
const MIN_SECRET_LENGTH = 3

/** Bytes of the longest piece of a form: a window, or a complete shorter secret. */
export const MAX_PIECE_BYTES = 8 * WINDOW_BYTES

/** One way to write a secret: folded, with one character per byte. */
export interface SecretForm {
  readonly text: string
  /** Offsets of the characters that each stand for one byte, and the end of the last one. */
  readonly signs: readonly number[]
}

/** Folds letter case and the variants of base64 and URLs. The length stays the same. */
export function foldVariants(bytes: string): string {
  return bytes.toLowerCase().replace(/[+-]/g, ' ').replaceAll('_', '/')
}

/** Yields each piece of a form that reveals the secret: all its windows, or a short form as a whole. */
export function* listPieces({ text, signs }: SecretForm): Generator<string> {
  const lastStart = Math.max(0, signs.length - 1 - WINDOW_BYTES)
  for (let index = 0; index <= lastStart; index++)
    yield text.slice(signs[index], signs[index + WINDOW_BYTES] ?? text.length)
}

/**
 * Lists every way in which a program may write a secret. URL encoding is no form, because outputs are decoded before
 * the comparison.
 */
export function listSecretForms(secrets: readonly Uint8Array[]): SecretForm[] {
  const forms = secrets.flatMap((secret) => createFormsOfSecret(Buffer.from(secret)))
  const long = forms.filter(({ text }) => text.length >= MIN_SECRET_LENGTH)
  return [...new Map(long.map((form) => [form.text, form])).values()]
}

function createFormsOfSecret(secret: Buffer): SecretForm[] {
  const text = secret.toString()
  const bytes = secret.toString('latin1')
  const base64 = secret.toString('base64')
  const lines = bytes.split(/[\r\n]+/).filter((line) => line.length >= MIN_LINE_LENGTH)
  return [
    createForm(bytes),
    // Folding covers only ASCII letters.
    createForm(convertToLatin1(text.toUpperCase())),
    createForm(convertToLatin1(text.toLowerCase())),
    ...lines.map((line) => createForm(line)),
    createForm(base64),
    createForm(base64.replace(/=+$/, '')),
    ...[0, 1, 2].map((offset) => createForm(encodeBase64Piece(secret, offset))),
    createForm(bytes, formatHex),
    createForm(bytes, (byte) => (/[ -~]/.test(byte) ? byte : `\\${byte.charCodeAt(0).toString(8).padStart(3, '0')}`)),
    createForm(bytes, (byte) => (/[ -~]/.test(byte) ? byte : `\\x${formatHex(byte)}`)),
    createForm(text, (character) => convertToLatin1(JSON.stringify(character).slice(1, -1))),
    createForm(text, (character) => convertToLatin1(character === "'" ? "'\\''" : character)),
    createForm(text, (character) => convertToLatin1(MARKUP_ENTITIES[character] ?? character)),
    // mount.cifs(8) doubles commas for the kernel.
    createForm(bytes, (byte) => (byte === ',' ? ',,' : byte)),
  ]
}

const MARKUP_ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

const convertToLatin1 = (text: string) => Buffer.from(text).toString('latin1')
const formatHex = (byte: string) => byte.charCodeAt(0).toString(16).padStart(2, '0')

function createForm(text: string, write = (character: string) => character): SecretForm {
  const signs = [0]
  let written = ''
  for (const character of text) {
    written += write(character)
    signs.push(written.length)
  }
  return { text: foldVariants(written), signs }
}

/** Returns the part of a text's base64 that depends only on the secret in it. */
function encodeBase64Piece(secret: Buffer, offset: number): string {
  const base64 = Buffer.concat([Buffer.alloc(offset), secret])
    .toString('base64')
    .replace(/=+$/, '')
  const isRagged = (offset + secret.length) % 3 !== 0
  const piece = base64.slice(Math.ceil((offset * 8) / 6), isRagged ? -1 : undefined)
  return piece.length >= WINDOW_BYTES ? piece : ''
}
