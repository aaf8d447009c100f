const SECRET_MASK = '***'
/** Shortest prefix of a secret that is masked at the end of an output. Shorter ones match everywhere. */
const MIN_PARTIAL_SECRET_LENGTH = 4
/** Number of bytes by which positions in an output are indexed. */
const OUTPUT_INDEX_KEY_LENGTH = 8

interface ByteRange {
  start: number
  end: number
}

/** Keeps the first and last bytes of a stream as text and masks every secret, also one that the cut divides. */
export class MaskedOutputEnds {
  readonly #secrets: readonly Uint8Array[]
  readonly #shown: number
  /** Bytes kept of each end: the shown ones, and the longest piece of a secret beyond them. */
  readonly #kept: number
  #head = Buffer.alloc(0)
  #tail = Buffer.alloc(0)
  #isCut = false

  /** @param shown minimum number of bytes of each end */
  constructor(secrets: readonly Uint8Array[], shown: number) {
    this.#secrets = secrets
    this.#shown = shown
    this.#kept = shown + MAX_SECRET_PIECE_BYTES
  }

  add(bytes: Uint8Array): void {
    const headSpace = this.#kept - this.#head.length
    this.#head = Buffer.concat([this.#head, bytes.subarray(0, headSpace)])
    const rest = bytes.subarray(headSpace)
    this.#isCut ||= this.#tail.length + rest.length > this.#kept
    this.#tail = Buffer.concat([this.#tail, rest.subarray(-this.#kept)]).subarray(-this.#kept)
  }

  get text(): string {
    const forms = listSecretForms(this.#secrets)
    if (!this.#isCut) return maskSecretForms(Buffer.concat([this.#head, this.#tail]), forms)
    const start = this.#tail.length - this.#shown
    return `${maskSecretForms(this.#head, forms, 0, this.#shown)} … ${maskSecretForms(this.#tail, forms, start)}`
  }
}

/** Masks a text whose white space was folded, because folding can join the parts of a secret. */
export function maskFoldedSecrets(
  text: string,
  secrets: readonly Uint8Array[],
  fold: (text: string) => string,
): string {
  const foldedSecrets = secrets.map((secret) => Buffer.from(fold(Buffer.from(secret).toString())))
  return maskSecretForms(Buffer.from(text), listSecretForms([...secrets, ...foldedSecrets]))
}

/** Masks the bytes from `start` to `end`. At the end of the input an incomplete secret is masked too. */
function maskSecretForms(bytes: Buffer, forms: readonly SecretForm[], start = 0, end = bytes.length): string {
  const isEnd = end === bytes.length
  const ranges = [createPlainOutputView(bytes), createPercentDecodedView(bytes)].flatMap((view) =>
    findSecretRanges(view, forms, isEnd),
  )
  const parts: Buffer[] = []
  let copied = start
  for (const range of mergeByteRanges(ranges)) {
    if (range.end <= copied) continue
    if (range.start >= end) break
    parts.push(bytes.subarray(copied, Math.max(copied, range.start)), Buffer.from(SECRET_MASK))
    copied = range.end
  }
  if (copied < end) parts.push(bytes.subarray(copied, end))
  return Buffer.concat(parts).toString()
}

function mergeByteRanges(ranges: readonly ByteRange[]): ByteRange[] {
  const result: ByteRange[] = []
  for (const { start, end } of ranges.toSorted((a, b) => a.start - b.start)) {
    const last = result.at(-1)
    if (last && start <= last.end) last.end = Math.max(last.end, end)
    else result.push({ start, end })
  }
  return result
}

/** A folded output, one character per byte, with the offset of each character and of the end. */
interface FoldedOutputView {
  text: string
  at: readonly number[]
}

function createPlainOutputView(bytes: Buffer): FoldedOutputView {
  return {
    text: foldEncodingVariants(bytes.toString('latin1')),
    at: Array.from({ length: bytes.length + 1 }, (_, index) => index),
  }
}

/** Decodes %XX sequences of URLs, because programs differ in the bytes that they encode. */
function createPercentDecodedView(bytes: Buffer): FoldedOutputView {
  const at: number[] = []
  const text = bytes.toString('latin1').replace(/%([0-9A-Fa-f]{2})|./gs, (whole, ...[digits, from]) => {
    at.push(from)
    return digits === undefined ? whole : String.fromCharCode(Number.parseInt(digits, 16))
  })
  return { text: foldEncodingVariants(text), at: [...at, bytes.length] }
}

function findSecretRanges({ text, at }: FoldedOutputView, forms: readonly SecretForm[], isEnd: boolean): ByteRange[] {
  const ranges: ByteRange[] = []
  const add = (start: number, end: number) => ranges.push({ start: at[start] ?? 0, end: at[end] ?? 0 })
  for (const { piece, starts } of findSecretPieceStarts(text, forms)) {
    for (const start of starts) if (text.startsWith(piece, start)) add(start, start + piece.length)
  }
  const start = isEnd ? findPartialSecretStart(text, forms) : undefined
  if (start !== undefined) add(start, text.length)
  return ranges
}

/** Yields each piece once, with its possible positions. The output is indexed, because a secret may be longer. */
function* findSecretPieceStarts(
  text: string,
  forms: readonly SecretForm[],
): Generator<{ piece: string; starts: Iterable<number> }> {
  const startsBySeed = new Map<string, number[]>()
  for (let start = 0; start + OUTPUT_INDEX_KEY_LENGTH <= text.length; start++) {
    const seed = text.slice(start, start + OUTPUT_INDEX_KEY_LENGTH)
    const starts = startsBySeed.get(seed)
    if (starts) starts.push(start)
    else startsBySeed.set(seed, [start])
  }
  const yieldedPieces = new Set<string>()
  for (const form of forms) {
    for (const piece of listSecretPieces(form)) {
      const starts =
        piece.length < OUTPUT_INDEX_KEY_LENGTH
          ? findTextOccurrences(text, piece)
          : startsBySeed.get(piece.slice(0, OUTPUT_INDEX_KEY_LENGTH))
      if (starts === undefined || yieldedPieces.has(piece)) continue
      yieldedPieces.add(piece)
      yield { piece, starts }
    }
  }
}

function* findTextOccurrences(text: string, piece: string): Generator<number> {
  for (let start = text.indexOf(piece); start >= 0; start = text.indexOf(piece, start + 1)) yield start
}

/** Finds the start of the trailing characters that may begin a form. */
function findPartialSecretStart(text: string, forms: readonly SecretForm[]): number | undefined {
  for (let start = 0; start <= text.length - MIN_PARTIAL_SECRET_LENGTH; start++) {
    const rest = text.slice(start)
    if (forms.some((form) => form.text.length > rest.length && form.text.startsWith(rest))) return start
  }
  return undefined
}

/** Any run of this many bytes of a secret is masked, even without the rest. */
const SECRET_WINDOW_BYTES = 8
// Shorter ones reveal nothing and match everywhere.
const MIN_SECRET_LINE_LENGTH = 4
const MIN_SECRET_LENGTH = 3

/** Bytes of the longest piece of a form: a window, or a complete shorter secret. */
const MAX_SECRET_PIECE_BYTES = 8 * SECRET_WINDOW_BYTES

/** One way to write a secret: folded, with one character per byte. */
interface SecretForm {
  readonly text: string
  /** Offsets of the characters that each stand for one byte, and the end of the last one. */
  readonly signs: readonly number[]
}

/** Folds letter case and the variants of base64 and URLs. The length stays the same. */
function foldEncodingVariants(bytes: string): string {
  return bytes.toLowerCase().replace(/[+-]/g, ' ').replaceAll('_', '/')
}

/** Yields each piece of a form that reveals the secret: all its windows, or a short form as a whole. */
function* listSecretPieces({ text, signs }: SecretForm): Generator<string> {
  const lastStart = Math.max(0, signs.length - 1 - SECRET_WINDOW_BYTES)
  for (let index = 0; index <= lastStart; index++)
    yield text.slice(signs[index], signs[index + SECRET_WINDOW_BYTES] ?? text.length)
}

/** Lists the ways to write a secret, except URL encoding: outputs are decoded before the comparison. */
export function listSecretForms(secrets: readonly Uint8Array[]): SecretForm[] {
  const forms = secrets.flatMap((secret) => createFormsOfSecret(Buffer.from(secret)))
  const long = forms.filter(({ text }) => text.length >= MIN_SECRET_LENGTH)
  return [...new Map(long.map((form) => [form.text, form])).values()]
}

function createFormsOfSecret(secret: Buffer): SecretForm[] {
  const text = secret.toString()
  const bytes = secret.toString('latin1')
  const base64 = secret.toString('base64')
  const lines = bytes.split(/[\r\n]+/).filter((line) => line.length >= MIN_SECRET_LINE_LENGTH)
  return [
    createSecretForm(bytes),
    // A form ignores the case of ASCII letters only, so others need a form each.
    createSecretForm(convertToLatin1(text.toUpperCase())),
    createSecretForm(convertToLatin1(text.toLowerCase())),
    ...lines.map((line) => createSecretForm(line)),
    createSecretForm(base64),
    createSecretForm(base64.replace(/=+$/, '')),
    ...[0, 1, 2].map((offset) => createSecretForm(encodeBase64Piece(secret, offset))),
    createSecretForm(bytes, formatHexByte),
    createSecretForm(bytes, (byte) =>
      /[ -~]/.test(byte) ? byte : `\\${byte.charCodeAt(0).toString(8).padStart(3, '0')}`,
    ),
    createSecretForm(bytes, (byte) => (/[ -~]/.test(byte) ? byte : `\\x${formatHexByte(byte)}`)),
    createSecretForm(text, (character) => convertToLatin1(JSON.stringify(character).slice(1, -1))),
    createSecretForm(text, (character) => convertToLatin1(character === "'" ? "'\\''" : character)),
    createSecretForm(text, (character) => convertToLatin1(MARKUP_ENTITIES[character] ?? character)),
    // mount.cifs(8) doubles commas for the kernel.
    createSecretForm(bytes, (byte) => (byte === ',' ? ',,' : byte)),
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
const formatHexByte = (byte: string) => byte.charCodeAt(0).toString(16).padStart(2, '0')

function createSecretForm(text: string, write = (character: string) => character): SecretForm {
  const signs = [0]
  let written = ''
  for (const character of text) {
    written += write(character)
    signs.push(written.length)
  }
  return { text: foldEncodingVariants(written), signs }
}

/** Returns the part of a text's base64 that depends only on the secret in it. */
function encodeBase64Piece(secret: Buffer, offset: number): string {
  const base64 = Buffer.concat([Buffer.alloc(offset), secret])
    .toString('base64')
    .replace(/=+$/, '')
  const isRagged = (offset + secret.length) % 3 !== 0
  const piece = base64.slice(Math.ceil((offset * 8) / 6), isRagged ? -1 : undefined)
  return piece.length >= SECRET_WINDOW_BYTES ? piece : ''
}
