const MASK = Buffer.from('***')
// Shorter pieces say nothing, and are found everywhere.
const SHORTEST_PIECE = 4
const SHORTEST_SECRET = 3

interface Range {
  start: number
  end: number
}

/** Masks secrets in a stream of bytes, also where one is cut in two. */
export class Scrubber {
  readonly #forms: readonly Buffer[]
  /** What must be seen again with the bytes that follow, and how much of it has been given out. */
  #kept = Buffer.alloc(0)
  #given = 0
  readonly #overlap: number

  constructor(secrets: readonly Uint8Array[]) {
    this.#forms = formsOf(secrets)
    this.#overlap = Math.max(1, ...this.#forms.map((form) => form.length)) - 1
  }

  push(chunk: Uint8Array): Buffer {
    const bytes = Buffer.concat([this.#kept, chunk])
    return this.#give(bytes, rangesOf(bytes, this.#forms), bytes.length - this.#overlap)
  }

  /** The rest. The beginning of a secret whose end never came is masked too. */
  end(): Buffer {
    const bytes = this.#kept
    const ranges = rangesOf(bytes, this.#forms)
    const start = beginningOf(bytes, this.#forms)
    if (start !== undefined) ranges.push({ start, end: bytes.length })
    return this.#give(bytes, merged(ranges), bytes.length)
  }

  #give(bytes: Buffer, ranges: readonly Range[], limit: number): Buffer {
    const parts: Buffer[] = []
    const end = Math.max(limit, this.#given)
    let at = this.#given
    for (const range of ranges) {
      if (range.end <= at) continue
      if (range.start >= end) break
      parts.push(bytes.subarray(at, Math.max(at, range.start)), MASK)
      at = range.end
    }
    if (at < end) parts.push(bytes.subarray(at, end))
    at = Math.max(at, end)
    const first = Math.max(0, Math.min(at, bytes.length - this.#overlap))
    this.#kept = Buffer.from(bytes.subarray(first))
    this.#given = at - first
    return Buffer.concat(parts)
  }
}

function rangesOf(bytes: Buffer, forms: readonly Buffer[]): Range[] {
  const ranges: Range[] = []
  for (const form of forms) {
    for (let start = bytes.indexOf(form); start >= 0; start = bytes.indexOf(form, start + 1)) {
      ranges.push({ start, end: start + form.length })
    }
  }
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
  const forms = new Map<string, Buffer>()
  const add = (form: string | Buffer) => {
    const bytes = Buffer.from(form)
    if (bytes.length >= SHORTEST_SECRET) forms.set(bytes.toString('latin1'), bytes)
  }
  for (const secret of secrets.map((bytes) => Buffer.from(bytes))) {
    add(secret)
    for (const line of secret.toString('latin1').split(/[\r\n]+/)) {
      if (line.length >= SHORTEST_PIECE) add(Buffer.from(line, 'latin1'))
    }
    const text = secret.toString()
    add(secret.toString('base64'))
    add(secret.toString('base64').replace(/=+$/, ''))
    add(percent(secret, /[A-Za-z0-9_.~-]/))
    add(percent(secret, /[A-Za-z0-9_.~-]/).toLowerCase())
    add(percent(secret, /[A-Za-z0-9_.~!'()*-]/))
    add(JSON.stringify(text).slice(1, -1))
    add(secret.toString('hex'))
    add(secret.toString('hex').toUpperCase())
    add(text.replaceAll("'", "'\\''"))
    add(markup(text))
    add(escaped(secret, (code) => `\\${code.toString(8).padStart(3, '0')}`))
    add(escaped(secret, (code) => `\\x${code.toString(16).padStart(2, '0')}`))
    for (const offset of [0, 1, 2]) add(inBase64(secret, offset))
    // mount.cifs(8) doubles commas for the kernel.
    add(Buffer.from(secret.toString('latin1').replaceAll(',', ',,'), 'latin1'))
  }
  return [...forms.values()]
}

const MARKUP: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' }

function markup(text: string): string {
  return text.replaceAll(/[&<>"']/g, (character) => MARKUP[character] ?? character)
}

function escaped(bytes: Buffer, write: (code: number) => string): string {
  return [...bytes.toString('latin1')].map((byte) => (/[ -~]/.test(byte) ? byte : write(byte.charCodeAt(0)))).join('')
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
  return long.reduce((rest, form) => rest.replaceAll(form, '***'), text)
}

function percent(bytes: Buffer, plain: RegExp): string {
  return [...bytes.toString('latin1')]
    .map((byte) => (plain.test(byte) ? byte : `%${byte.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`))
    .join('')
}
