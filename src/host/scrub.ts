const MASK = '***'
// Shorter pieces say nothing, and are found everywhere.
const SHORTEST_PIECE = 4
const SHORTEST_SECRET = 3

interface Range {
  start: number
  end: number
}

/** The first and last bytes of a stream as text, in which every secret is masked, also where it is cut in two. */
export class KeptEnds {
  readonly #forms: readonly Buffer[]
  readonly #shown: number
  /** Of each end: what is shown, and as much as a secret reaches beyond it. */
  readonly #kept: number
  #head = Buffer.alloc(0)
  #tail = Buffer.alloc(0)
  #isCut = false

  /** @param shown bytes of each end, at least */
  constructor(secrets: readonly Uint8Array[], shown: number) {
    this.#forms = formsOf(secrets)
    this.#shown = shown
    this.#kept = shown + Math.max(0, ...this.#forms.map((form) => form.length))
  }

  add(bytes: Uint8Array): void {
    const room = this.#kept - this.#head.length
    this.#head = Buffer.concat([this.#head, bytes.subarray(0, room)])
    const rest = bytes.subarray(room)
    this.#isCut ||= this.#tail.length + rest.length > this.#kept
    this.#tail = Buffer.concat([this.#tail, rest.subarray(-this.#kept)]).subarray(-this.#kept)
  }

  get text(): string {
    if (!this.#isCut) return masked(Buffer.concat([this.#head, this.#tail]), this.#forms)
    const start = this.#tail.length - this.#shown
    return `${masked(this.#head, this.#forms, 0, this.#shown)} … ${masked(this.#tail, this.#forms, start)}`
  }
}

/** What lies from `start` to `end`. At the end of all bytes the beginning of a secret without its end is masked too. */
function masked(bytes: Buffer, forms: readonly Buffer[], start = 0, end = bytes.length): string {
  const parts: Buffer[] = []
  let at = start
  for (const range of rangesOf(bytes, forms, end === bytes.length)) {
    if (range.end <= at) continue
    if (range.start >= end) break
    parts.push(bytes.subarray(at, Math.max(at, range.start)), Buffer.from(MASK))
    at = range.end
  }
  if (at < end) parts.push(bytes.subarray(at, end))
  return Buffer.concat(parts).toString()
}

function rangesOf(bytes: Buffer, forms: readonly Buffer[], isEnd: boolean): Range[] {
  const ranges: Range[] = []
  for (const form of forms) {
    for (let start = bytes.indexOf(form); start >= 0; start = bytes.indexOf(form, start + 1)) {
      ranges.push({ start, end: start + form.length })
    }
  }
  const start = isEnd ? beginningOf(bytes, forms) : undefined
  if (start !== undefined) ranges.push({ start, end: bytes.length })
  return merged(ranges)
}

function merged(ranges: readonly Range[]): Range[] {
  const result: Range[] = []
  for (const { start, end } of ranges.toSorted((a, b) => a.start - b.start)) {
    const last = result.at(-1)
    if (last && start <= last.end) last.end = Math.max(last.end, end)
    else result.push({ start, end })
  }
  return result
}

/** Where the last bytes begin that could be a form's first. */
function beginningOf(bytes: Buffer, forms: readonly Buffer[]): number | undefined {
  for (let start = 0; start <= bytes.length - SHORTEST_PIECE; start++) {
    const rest = bytes.subarray(start)
    if (forms.some((form) => form.length > rest.length && form.subarray(0, rest.length).equals(rest))) return start
  }
  return undefined
}

/** Every way in which a program may repeat a secret: as it is, by lines, as kubelet sent it, quoted. */
export function formsOf(secrets: readonly Uint8Array[]): Buffer[] {
  const forms = secrets.flatMap((secret) => formsOfOne(Buffer.from(secret))).map((form) => Buffer.from(form))
  const long = forms.filter((form) => form.length >= SHORTEST_SECRET)
  return [...new Map(long.map((form) => [form.toString('latin1'), form])).values()]
}

function formsOfOne(secret: Buffer): (string | Buffer)[] {
  const text = secret.toString()
  const bytes = secret.toString('latin1')
  const base64 = secret.toString('base64')
  const hex = secret.toString('hex')
  const lines = bytes.split(/[\r\n]+/).filter((line) => line.length >= SHORTEST_PIECE)
  return [
    secret,
    ...lines.map((line) => Buffer.from(line, 'latin1')),
    base64,
    base64.replace(/=+$/, ''),
    bytes.replace(/[^A-Za-z0-9_.~-]/g, (byte) => `%${hexOf(byte).toUpperCase()}`),
    bytes.replace(/[^A-Za-z0-9_.~-]/g, (byte) => `%${hexOf(byte)}`),
    bytes.replace(/[^A-Za-z0-9_.~!'()*-]/g, (byte) => `%${hexOf(byte).toUpperCase()}`),
    JSON.stringify(text).slice(1, -1),
    hex,
    hex.toUpperCase(),
    text.replaceAll("'", "'\\''"),
    text.replaceAll(/[&<>"']/g, (character) => MARKUP[character] ?? character),
    bytes.replace(/[^ -~]/g, (byte) => `\\${byte.charCodeAt(0).toString(8).padStart(3, '0')}`),
    bytes.replace(/[^ -~]/g, (byte) => `\\x${hexOf(byte)}`),
    ...[0, 1, 2].map((offset) => inBase64(secret, offset)),
    // mount.cifs(8) doubles commas for the kernel.
    Buffer.from(bytes.replaceAll(',', ',,'), 'latin1'),
  ]
}

const MARKUP: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' }

function hexOf(byte: string): string {
  return byte.charCodeAt(0).toString(16).padStart(2, '0')
}

/** Of base64 of a text that holds the secret, what depends on the secret alone. */
function inBase64(secret: Buffer, offset: number): string {
  const whole = Buffer.concat([Buffer.alloc(offset), secret])
    .toString('base64')
    .replace(/=+$/, '')
  const isRagged = (offset + secret.length) % 3 !== 0
  const piece = whole.slice(Math.ceil((offset * 8) / 6), isRagged ? -1 : undefined)
  return piece.length >= 2 * SHORTEST_PIECE ? piece : ''
}

/** The same for a text of which white space was folded: that can put together what was apart. */
export function maskFolded(text: string, secrets: readonly Uint8Array[], fold: (text: string) => string): string {
  const forms = formsOf(secrets).map((form) => fold(form.toString()))
  const long = forms
    .filter((form) => form.length >= SHORTEST_SECRET)
    .toSorted((one, other) => other.length - one.length)
  return long.reduce((rest, form) => rest.replaceAll(form, MASK), text)
}
