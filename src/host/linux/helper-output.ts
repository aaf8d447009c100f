import type { Readable } from 'node:stream'
import { maskFolded, Scrubber } from '../scrub.ts'

const KEPT = 4096
const LONGEST_SHOWN = 300
// A process that a helper has left behind may keep its output open for ever.
const GRACE_MS = 200

/** What a helper says: all of it is read, the first and last 4 KiB of each stream are kept, without secrets. */
export class HelperOutput {
  readonly #streams: readonly StreamOutput[]
  readonly #secrets: readonly Uint8Array[]

  constructor(streams: readonly Readable[], secrets: readonly Uint8Array[]) {
    this.#secrets = secrets
    this.#streams = streams.map((stream) => new StreamOutput(stream, new Scrubber(secrets)))
  }

  /** Reads what was written until now; whoever still has the streams open is not waited for. */
  async finish(): Promise<void> {
    let timer: NodeJS.Timeout | undefined
    const grace = new Promise((done) => {
      timer = setTimeout(done, GRACE_MS)
    })
    await Promise.race([Promise.all(this.#streams.map(({ closed }) => closed)), grace])
    clearTimeout(timer)
    for (const stream of this.#streams) stream.end()
  }

  /** One line for a message, its beginning and its end: control characters are none of it. */
  get text(): string {
    const all = maskFolded(oneLine(this.#streams.map(({ text }) => text).join('\n')), this.#secrets, oneLine)
    if (all.length <= 2 * LONGEST_SHOWN) return all
    return `${all.slice(0, LONGEST_SHOWN)} … ${all.slice(-LONGEST_SHOWN)}`
  }
}

class StreamOutput {
  readonly closed: Promise<unknown>
  readonly #stream: Readable
  readonly #scrubber: Scrubber
  #head = Buffer.alloc(0)
  #tail = Buffer.alloc(0)
  #isCut = false

  constructor(stream: Readable, scrubber: Scrubber) {
    this.#stream = stream
    this.#scrubber = scrubber
    this.closed = new Promise((done) => stream.once('close', done))
    stream.on('data', (chunk: Buffer) => this.#add(scrubber.push(chunk)))
    stream.on('error', () => {})
  }

  #add(bytes: Buffer): void {
    const room = KEPT - this.#head.length
    this.#head = Buffer.concat([this.#head, bytes.subarray(0, room)])
    const rest = bytes.subarray(room)
    this.#isCut ||= this.#tail.length + rest.length > KEPT
    this.#tail = Buffer.concat([this.#tail, rest.subarray(-KEPT)]).subarray(-KEPT)
  }

  end(): void {
    this.#stream.removeAllListeners('data')
    this.#stream.destroy()
    this.#add(this.#scrubber.end())
  }

  get text(): string {
    return this.#isCut ? `${this.#head} … ${this.#tail}` : Buffer.concat([this.#head, this.#tail]).toString()
  }
}

function oneLine(text: string): string {
  return text.replace(/[\s\p{Cc}\p{Cf}\p{Zl}\p{Zp}\ufffd]+/gu, ' ').trim()
}
