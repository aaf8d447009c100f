import type { Readable } from 'node:stream'
import { findPhrases } from '../helper-phrases.ts'
import { maskFolded, OutputEnds } from '../mask-secrets.ts'
import { resolveWithin } from './child-process.ts'

const KEPT_BYTES = 4096
const MAX_SHOWN_LENGTH = 300
// A process that a helper has started may keep the output open indefinitely.
const GRACE_MS = 200

/**
 * Reads all output of a helper and keeps the first and last 4 KiB of each stream. If the helper had secrets, only texts
 * of a fixed list are shown.
 */
export class HelperOutput {
  readonly #streams: readonly Readable[]
  readonly #ends: readonly OutputEnds[]
  readonly #closed: Promise<unknown>
  readonly #secrets: readonly Uint8Array[]

  constructor(streams: readonly Readable[], secrets: readonly Uint8Array[]) {
    this.#secrets = secrets
    this.#streams = streams
    this.#ends = streams.map((stream) => {
      const ends = new OutputEnds(secrets, KEPT_BYTES)
      stream.on('data', (chunk: Buffer) => ends.add(chunk))
      stream.on('error', () => {})
      return ends
    })
    this.#closed = Promise.all(streams.map((stream) => new Promise((done) => stream.once('close', done))))
  }

  /** Ends reading, without waiting for other processes that still have the streams open. */
  async finish(): Promise<void> {
    await resolveWithin(GRACE_MS, this.#closed)
    for (const stream of this.#streams) {
      stream.removeAllListeners('data')
      stream.destroy()
    }
  }

  /** Returns the beginning and the end in one line for a message, without control characters. */
  get text(): string {
    const all = maskFolded(foldToLine(this.#ends.map(({ text }) => text).join('\n')), this.#secrets, foldToLine)
    if (this.#secrets.length > 0) return quotePhrases(all)
    if (all.length <= 2 * MAX_SHOWN_LENGTH) return all
    return `${all.slice(0, MAX_SHOWN_LENGTH)} … ${all.slice(-MAX_SHOWN_LENGTH)}`
  }
}

function quotePhrases(output: string): string {
  const hidden = 'its output is not shown, as it had secrets'
  if (output === '') return ''
  const phrases = findPhrases(output)
  return phrases.length === 0 ? hidden : `${phrases.join(': ')} (the rest of ${hidden})`
}

function foldToLine(text: string): string {
  return text.replace(/[\s\p{Cc}\p{Cf}\p{Zl}\p{Zp}\ufffd]+/gu, ' ').trim()
}
