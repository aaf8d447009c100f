import { describe, expect, it } from 'vitest'
import { formsOf, Scrubber } from '../../src/host/scrub.ts'

/** Every way to cut a text in three pieces. */
function scrubbedInPieces(bytes: Buffer, secrets: readonly Uint8Array[]): Set<string> {
  const results = new Set<string>()
  for (let one = 0; one <= bytes.length; one++) {
    for (let two = one; two <= bytes.length; two++) {
      const scrubber = new Scrubber(secrets)
      const parts = [bytes.subarray(0, one), bytes.subarray(one, two), bytes.subarray(two)]
      const text = Buffer.concat([...parts.map((part) => scrubber.push(part)), scrubber.end()])
      // How often a mask is repeated where two secrets meet depends on the pieces.
      results.add(text.toString('latin1').replace(/(\*\*\*)+/g, '***'))
    }
  }
  return results
}

function scrubbed(text: string | Buffer, ...secrets: (string | Buffer)[]): string {
  const scrubber = new Scrubber(secrets.map((secret) => Buffer.from(secret)))
  return Buffer.concat([scrubber.push(Buffer.from(text)), scrubber.end()]).toString('latin1')
}

describe('secrets are masked', () => {
  const SECRET = 'p,a"s\\s w%rd!'
  it.each([
    ['as they are', SECRET],
    ['in base64, as kubelet sent them', Buffer.from(SECRET).toString('base64')],
    ['in base64 without padding', Buffer.from(SECRET).toString('base64').replace(/=+$/, '')],
    ['in an address', encodeURIComponent(SECRET)],
    ['in an address, all quoted', 'p%2Ca%22s%5Cs%20w%25rd%21'],
    ['in an address, in small letters', 'p%2ca%22s%5cs%20w%25rd%21'],
    ['in JSON', JSON.stringify(SECRET).slice(1, -1)],
    ['with doubled commas', SECRET.replace(',', ',,')],
  ])('%s', (_how, form) => {
    expect(scrubbed(`before ${form} after`, SECRET)).toBe('before *** after')
  })

  it('line by line, the line ends of any system', () => {
    const key = '-----BEGIN KEY-----\r\nMIIEpAIB\nabc\nxyzw\n-----END KEY-----\n'
    expect(scrubbed('bad line: MIIEpAIB; bad line: xyzw; abc', key)).toBe('bad line: ***; bad line: ***; abc')
  })

  it('that are no text', () => {
    const secret = Buffer.from([0xff, 0x00, 0x80, 0x0a, 0x01])
    expect(scrubbed(Buffer.concat([Buffer.from('a'), secret, Buffer.from('b')]), secret)).toBe('a***b')
  })

  it('wherever the stream is cut', () => {
    const text = Buffer.from('x hunter2 aHVudGVyMg== y hunter2hunter2 z')
    expect(scrubbedInPieces(text, [Buffer.from('hunter2')])).toEqual(new Set(['x *** *** y *** z']))
  })

  it('that repeat themselves, wherever the stream is cut', () => {
    expect(scrubbedInPieces(Buffer.from('x ababab y ababa z'), [Buffer.from('abab')])).toEqual(
      new Set(['x *** y ***a z']),
    )
  })

  it('that hold one another', () => {
    expect(scrubbed('secret-long secret', 'secret', 'secret-long')).toBe('*** ***')
  })

  it('of which only the beginning came', () => {
    expect(scrubbed('it was hunt', 'hunter2')).toBe('it was ***')
    expect(scrubbed('it was hun', 'hunter2')).toBe('it was hun')
  })

  it('and an empty one masks nothing', () => {
    expect(formsOf([new Uint8Array()])).toEqual([])
    expect(scrubbed('text', '')).toBe('text')
  })
})
