import type { Readable } from 'node:stream'
import { findPhrases } from '../helper-phrases.ts'
import { KeptEnds, maskFolded } from '../scrub.ts'
import { within } from './child.ts'

const KEPT = 4096
const LONGEST_SHOWN = 300
// A process that a helper has left behind may keep its output open for ever.
const GRACE_MS = 200

/**
 * What a helper prints: all of it is read, the first and last 4 KiB of each stream are kept. Of a helper that had secrets only texts
 * of a fixed list are shown.
 */
export class HelperOutput {
  readonly #streams: readonly Readable[]
  readonly #ends: readonly KeptEnds[]
  readonly #closed: Promise<unknown>
  readonly #secrets: readonly Uint8Array[]

  constructor(streams: readonly Readable[], secrets: readonly Uint8Array[]) {
    this.#secrets = secrets
    this.#streams = streams
    this.#ends = streams.map((stream) => {
      const ends = new KeptEnds(secrets, KEPT)
      stream.on('data', (chunk: Buffer) => ends.add(chunk))
      stream.on('error', () => {})
      return ends
    })
    this.#closed = Promise.all(streams.map((stream) => new Promise((done) => stream.once('close', done))))
  }

  /** Reads what was written until now; whoever still has the streams open is not waited for. */
  async finish(): Promise<void> {
    await within(GRACE_MS, this.#closed)
    for (const stream of this.#streams) {
      stream.removeAllListeners('data')
      stream.destroy()
    }
  }

  /** One line for a message, its beginning and its end, without control characters. */
  get text(): string {
    const all = maskFolded(oneLine(this.#ends.map(({ text }) => text).join('\n')), this.#secrets, oneLine)
    if (this.#secrets.length > 0) return quotePhrases(all)
    if (all.length <= 2 * LONGEST_SHOWN) return all
    return `${all.slice(0, LONGEST_SHOWN)} … ${all.slice(-LONGEST_SHOWN)}`
  }
}

function quotePhrases(output: string): string {
  const hidden = 'its output is not shown, as it had secrets'
  if (output === '') return ''
  const phrases = findPhrases(output)
  return phrases.length === 0 ? hidden : `${phrases.join(': ')} (the rest of ${hidden})`
}

function oneLine(text: string): string {
  return text.replace(/[\s\p{Cc}\p{Cf}\p{Zl}\p{Zp}\ufffd]+/gu, ' ').trim()
}
