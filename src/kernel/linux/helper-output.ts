import type { Readable } from 'node:stream'
import { MaskedOutputEnds, maskFoldedSecrets } from '../mask-secrets.ts'
import { resolveWithinTimeout } from '../waiting.ts'

const KEPT_OUTPUT_BYTES = 4096
const MAX_SHOWN_OUTPUT_LENGTH = 300
// A process that a helper has started may keep the output open indefinitely.
const OUTPUT_CLOSE_TIMEOUT_MS = 200

/** Keeps the first and last 4 KiB of each stream. If the helper had secrets, only texts of a list are shown. */
export class HelperOutput {
  readonly #streams: readonly Readable[]
  readonly #ends: readonly MaskedOutputEnds[]
  readonly #closed: Promise<unknown>
  readonly #secrets: readonly Uint8Array[]

  constructor(streams: readonly Readable[], secrets: readonly Uint8Array[]) {
    this.#secrets = secrets
    this.#streams = streams
    this.#ends = streams.map((stream) => {
      const ends = new MaskedOutputEnds(secrets, KEPT_OUTPUT_BYTES)
      stream.on('data', (chunk: Buffer) => ends.add(chunk))
      stream.on('error', () => {})
      return ends
    })
    this.#closed = Promise.all(streams.map((stream) => new Promise((done) => stream.once('close', done))))
  }

  /** Ends reading, without waiting for other processes that still have the streams open. */
  async finish(): Promise<void> {
    await resolveWithinTimeout(OUTPUT_CLOSE_TIMEOUT_MS, this.#closed)
    for (const stream of this.#streams) {
      stream.removeAllListeners('data')
      stream.destroy()
    }
  }

  /** Returns the beginning and the end in one line for a message, without control characters. */
  get text(): string {
    const all = maskFoldedSecrets(
      joinToOneLine(this.#ends.map(({ text }) => text).join('\n')),
      this.#secrets,
      joinToOneLine,
    )
    if (this.#secrets.length > 0) return quoteAllowedPhrases(all)
    if (all.length <= 2 * MAX_SHOWN_OUTPUT_LENGTH) return all
    return `${all.slice(0, MAX_SHOWN_OUTPUT_LENGTH)} … ${all.slice(-MAX_SHOWN_OUTPUT_LENGTH)}`
  }
}

function quoteAllowedPhrases(output: string): string {
  const hidden = 'its output is not shown, as it had secrets'
  if (output === '') return ''
  const phrases = findAllowedPhrases(output)
  return phrases.length === 0 ? hidden : `${phrases.join(': ')} (the rest of ${hidden})`
}

function joinToOneLine(text: string): string {
  return text.replace(/[\s\p{Cc}\p{Cf}\p{Zl}\p{Zp}\ufffd]+/gu, ' ').trim()
}

/**
 * The only texts that a message may quote from a helper that had secrets. The helper's own output may contain a secret
 * in any form. These texts are modekeep's own copies.
 */
const ALLOWED_PHRASES: readonly string[] = [
  // strerror(3)
  'Permission denied',
  'Operation not permitted',
  'No such file or directory',
  'No such device or address',
  'No such device',
  'Invalid argument',
  'Device or resource busy',
  'Input/output error',
  'No space left on device',
  'Read-only file system',
  'Operation not supported',
  'Operation already in progress',
  'Cannot allocate memory',
  'Connection refused',
  'Connection timed out',
  'Connection reset by peer',
  'Network is unreachable',
  'No route to host',
  'Host is down',
  'Required key not available',
  'Key has expired',
  'Key was rejected by service',
  'Stale file handle',
  'Protocol not supported',
  // getaddrinfo(3)
  'Name or service not known',
  'Temporary failure in name resolution',
  // mount.cifs(8)
  'could not resolve address for',
  'Unable to find suitable address',
  // ssh(1)
  'Could not resolve hostname',
  'Host key verification failed',
  'REMOTE HOST IDENTIFICATION HAS CHANGED',
  'Load key',
  'error in libcrypto',
  'invalid format',
  'incorrect passphrase supplied to decrypt private key',
  'Too many authentication failures',
  'subsystem request failed',
  'Connection closed by',
  'remote host has disconnected',
  // fusermount3(1)
  'fuse device not found',
  'mountpoint is not empty',
  'option allow_other only allowed if',
  // s3fs(1), rclone(1), gocryptfs(1)
  'Access Denied',
  'SignatureDoesNotMatch',
  'InvalidAccessKeyId',
  'The specified bucket does not exist',
  'invalid credentials',
  'could not determine how to establish security credentials',
  'Password incorrect',
]

/** The largest errno of Linux, errno(3). */
const MAX_ERRNO = 133

/** More phrases add little to the reason, because the helper chooses its output. */
const MAX_QUOTED_PHRASES = 3

/** Finds the listed texts in an output. @param output on one line, with its secrets masked */
function findAllowedPhrases(output: string): string[] {
  const text = output.toLowerCase()
  const [, errno = ''] = /mount error\((\d{1,3})\)/.exec(text) ?? []
  const isErrno = Number(errno) >= 1 && Number(errno) <= MAX_ERRNO
  const matches = ALLOWED_PHRASES.filter((phrase) => text.includes(phrase.toLowerCase()))
  // A phrase that is part of another match adds nothing.
  const longest = matches.filter((phrase) => !matches.some((other) => other !== phrase && other.includes(phrase)))
  return [...(isErrno ? [`mount error(${Number(errno)})`] : []), ...longest].slice(0, MAX_QUOTED_PHRASES)
}
