import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { MaskedOutputEnds, maskFoldedSecrets } from '../../src/kernel/mask-secrets.ts'
import { expectInTime } from '../helpers/busy-machine.ts'

/** A helper's output as it is reported: the ends of a stream, then one line. */
function told(output: string | Buffer, secret: Buffer): string {
  const ends = new MaskedOutputEnds([secret], 4096)
  ends.add(Buffer.from(output))
  const oneLine = (text: string) => text.replace(/\s+/g, ' ').trim()
  return maskFoldedSecrets(oneLine(ends.text), [secret], oneLine)
}

const url = (bytes: Buffer) => bytes.toString('latin1').replace(/[^A-Za-z0-9]/g, (byte) => `%${hex(byte)}`)
const hex = (byte: string) => byte.charCodeAt(0).toString(16).padStart(2, '0')

/** How a program may write bytes. */
const WAYS: readonly [how: string, write: (bytes: Buffer) => string][] = [
  ['in plain text', (bytes) => bytes.toString()],
  ['in upper case', (bytes) => bytes.toString().toUpperCase()],
  ['in lower case', (bytes) => bytes.toString().toLowerCase()],
  ['in hex', (bytes) => bytes.toString('hex')],
  ['in hex, upper case', (bytes) => bytes.toString('hex').toUpperCase()],
  ['in base64', (bytes) => bytes.toString('base64')],
  ['in base64url', (bytes) => bytes.toString('base64url')],
  ['in base64, at an offset of one byte', (bytes) => Buffer.concat([Buffer.from(':'), bytes]).toString('base64')],
  ['in base64, at an offset of two bytes', (bytes) => Buffer.concat([Buffer.from('u:'), bytes]).toString('base64')],
  ['in an address', url],
  ['in an address, upper case', (bytes) => url(bytes).toUpperCase()],
  [
    'in an address, with every byte escaped',
    (bytes) => bytes.toString('latin1').replace(/./gs, (byte) => `%${hex(byte)}`),
  ],
  ['in an address, with the required escapes', (bytes) => encodeURI(bytes.toString())],
  ['in JSON', (bytes) => JSON.stringify(bytes.toString()).slice(1, -1)],
]

const SECRET = Buffer.from('Tr0ub4dor&3 is-not_Much/better+than "this", É')

describe('a piece of a secret that a helper prints', () => {
  it.each(WAYS)('%s is masked wherever the output is cut', (_how, write) => {
    for (let from = 0; from + 8 <= 40; from++) {
      for (const size of [8, 9, 13, 20]) {
        const piece = write(SECRET.subarray(from, Math.min(40, from + size)))
        // What is beside the piece has bits of the first and the last sign of base64.
        expect(told(`mount error: [${piece}]`, SECRET), piece).toMatch(/^mount error: \[.{0,4}\*\*\*.{0,4}\]$/)
      }
    }
  })

  it('is masked for any secret and encoding, and other text is unchanged', () => {
    const secrets = fc.uint8Array({ minLength: 8, maxLength: 40 }).map((bytes) => Buffer.from(bytes))
    const exact = WAYS.filter(([how]) => /hex|base64|each byte/.test(how))
    fc.assert(
      fc.property(secrets, fc.constantFrom(...exact), fc.nat(), ([...bytes], [, write], cut) => {
        const secret = Buffer.from(bytes)
        const from = cut % (secret.length - 7)
        const text = told(`it says [${write(secret.subarray(from))}]`, secret)
        // A bracket may be a byte of the secret too.
        expect(text).toMatch(/^it says \[?.{0,4}\*\*\*.{0,4}\]?$/)
      }),
    )
    expect(told('mount error(13): Permission denied, see mount.cifs(8)', SECRET)).toBe(
      'mount error(13): Permission denied, see mount.cifs(8)',
    )
  })

  it('is found quickly in the largest secret with any repetitions', () => {
    const secret = Buffer.alloc(96 << 10, 'ab')
    const start = performance.now()
    expect(told('ab'.repeat(50_000), secret)).toMatch(/^\*\*\*[ …]+\*\*\*$/)
    expect(told(`${'61'.repeat(50_000)} end`, secret)).toContain('end')
    expectInTime(performance.now() - start, 20_000)
  })
})
